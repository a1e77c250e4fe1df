#include "engine/train/run_data.h"

#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/base/engine_error.h"
#include "engine/base/fault.h"
#include "engine/data/vocabulary.h"

namespace ptrain::train {
namespace {

// Rank 0's text, or its error on every rank. Collective over the world.
std::string from_first(comm::Communicator& world, const std::function<std::string()>& make) {
  std::optional<Error> error;
  std::string text;
  if (world.rank() == 0) {
    try {
      text = make();
    } catch (const EngineError& failure) {
      error = failure.error();
      text = nlohmann::json{static_cast<int>(error->code), error->message, error->hint}.dump();
    }
  }
  fault::point("start.data.broadcast");
  std::array<std::int64_t, 2> header{error ? 1 : 0, static_cast<std::int64_t>(text.size())};
  world.broadcast(reinterpret_cast<std::byte*>(header.data()), sizeof(header), 0)->wait();
  text.resize(static_cast<std::size_t>(header[1]));
  world.broadcast(reinterpret_cast<std::byte*>(text.data()), header[1], 0)->wait();
  if (header[0] == 0) return text;
  const auto fields = nlohmann::json::parse(text);
  throw EngineError(static_cast<ExitCode>(fields[0].get<int>()), fields[1].get<std::string>(),
                    fields[2].get<std::string>());
}

}  // namespace

RunData open_data(const run::Plan& plan, const Progress& progress, comm::Communicator& world) {
  const std::string text = from_first(world, [&] {
    const auto& data = plan.recipe.data;
    const auto files = progress.train_hash.empty()
                           ? data::prepare_index(data, plan.recipe_folder)
                           : data::reopen_index(data, plan.recipe_folder, progress.train_hash,
                                                progress.validation_hash);
    return nlohmann::json{files.train, files.validation, files.sources_changed}.dump();
  });
  const auto paths = nlohmann::json::parse(text);
  RunData data;
  fault::point("start.data.open_train");
  data.train = data::open_index(paths[0].get<std::string>());
  fault::point("start.data.open_validation");
  if (const auto path = paths[1].get<std::string>(); !path.empty())
    data.validation = data::open_index(path);
  data::check_vocabulary(*data.train, data.validation.get(), plan.recipe);
  if (plan.recipe.validation.sample_tokens > 0)
    data.tokenizer = data::open_tokenizer(plan.recipe.data, plan.recipe_folder);
  data.sources_changed = paths[2].get<bool>();
  return data;
}

}  // namespace ptrain::train
