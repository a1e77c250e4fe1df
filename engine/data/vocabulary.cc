#include "engine/data/vocabulary.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/engine_error.h"

namespace ptrain::data {
namespace {

bool holds_beyond(const Tokens& tokens, std::int64_t vocab_size) {
  for (std::int64_t t = 0; t < tokens.size(); ++t)
    if (tokens[t] >= vocab_size) return true;
  return false;
}

// Counted within the entry of data, without what is held out; empty: no document holds one.
std::string first_place(const Index& index, const std::vector<recipe::DataSource>& sources,
                        std::int64_t vocab_size) {
  const std::vector<std::int64_t> bounds = index.sources();
  for (std::size_t source = 0; source + 1 < bounds.size(); ++source)
    for (std::int64_t i = bounds[source]; i < bounds[source + 1]; ++i)
      if (holds_beyond(index.document(i), vocab_size))
        return fmt::format("document {} of those taken from {}", i - bounds[source] + 1,
                           source < sources.size() ? sources[source].path : "the data");
  return "";
}

std::string remedy(const recipe::Model& model) {
  if (model.hf.empty())
    return "make the data with the model's tokenizer, or set model.vocab_size to that of theirs";
  return fmt::format(
      "make the data with the model's own tokenizer: scripts/prepare_data.py --tokenizer "
      "{}/tokenizer.json",
      model.hf);
}

// sources: the entries of data that the index is of.
void check(const Index& index, const std::vector<recipe::DataSource>& sources,
           const recipe::Model& model) {
  if (index.vocabulary() <= model.vocab_size) return;
  const std::string place = first_place(index, sources, model.vocab_size);
  throw EngineError(
      ExitCode::kUnusable,
      fmt::format("the data holds tokens up to {}, but the model has {}{}", index.vocabulary() - 1,
                  model.vocab_size, place.empty() ? "" : "; the first beyond is in " + place),
      remedy(model));
}

}  // namespace

void check_vocabulary(const Index& train, const Index* validation, const recipe::Recipe& recipe) {
  check(train, recipe.data.train, recipe.model);
  // Without texts of its own it is a share of those to train on.
  const auto& held_out =
      recipe.data.validation.empty() ? recipe.data.train : recipe.data.validation;
  if (validation != nullptr) check(*validation, held_out, recipe.model);
}

}  // namespace ptrain::data
