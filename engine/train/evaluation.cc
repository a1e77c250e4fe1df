#include "engine/train/evaluation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "core/base/divide.h"
#include "engine/base/fault.h"
#include "engine/data/loader.h"

namespace ptrain::train {
namespace {

// A row of one document, and behind it what fills the row up to a multiple of `ranks`, which share
// its tokens.
data::MicroBatch context_row(std::span<const std::int32_t> document, int ranks) {
  const auto length = std::ssize(document);
  data::MicroBatch batch;
  batch.rows = 1;
  batch.sequence = round_up(length, std::int64_t{ranks});
  batch.tokens.assign(document.begin(), document.end());
  batch.tokens.resize(static_cast<std::size_t>(batch.sequence));
  batch.targets.assign(batch.tokens.size(), data::kNoTarget);
  batch.positions.resize(batch.tokens.size());
  std::iota(batch.positions.begin(), batch.positions.begin() + length, 0);
  batch.documents.push_back({0, length});
  if (length < batch.sequence) batch.documents.push_back({length, batch.sequence});
  return batch;
}

// Draws from softmax(logits) by inverting the cumulative sum at u in [0, 1).
std::int32_t draw(const std::vector<double>& logits, std::int32_t num_tokens, double u) {
  const double top = *std::max_element(logits.begin(), logits.begin() + num_tokens);
  double total = 0;
  for (std::int32_t token = 0; token < num_tokens; ++token)
    total += std::exp(logits[static_cast<std::size_t>(token)] - top);
  double rest = u * total;
  for (std::int32_t token = 0; token < num_tokens; ++token) {
    rest -= std::exp(logits[static_cast<std::size_t>(token)] - top);
    if (rest < 0) return token;
  }
  return num_tokens - 1;
}

// Takes the targets of all rows but the first `num_rows`.
void keep_rows(data::MicroBatch& batch, std::int64_t num_rows) {
  const std::int64_t kept = std::clamp<std::int64_t>(num_rows, 0, batch.rows) * batch.sequence;
  std::fill(batch.targets.begin() + kept, batch.targets.end(), data::kNoTarget);
}

}  // namespace

ValidationResult validate(ShapeRun& shape, const std::shared_ptr<const data::Index>& index,
                          const recipe::Recipe& recipe) {
  const std::int64_t sequence = shape.shape().sequence;
  data::Loader loader(index, {recipe.seed, sequence, recipe.data.packing, false});
  const auto& layout = shape.layout();
  const std::int64_t num_rows = divide_up(recipe.validation.tokens, sequence);
  const std::int64_t rows_a_round = layout.micro_batch * layout.num_data_ranks();
  layers::LossSums total;
  for (std::int64_t first = 0; first < num_rows && !loader.at_end(); first += rows_a_round) {
    fault::point("train.validation.rows");
    auto rows = loader.next(shape.data_rank(), layout.num_data_ranks(), 1, layout.micro_batch);
    // The last round may reach past the end on some ranks only: the same rows for any layout.
    keep_rows(rows.micro_batches.front(),
              num_rows - first - shape.data_rank() * layout.micro_batch);
    const auto sums = shape.executor().evaluate(shape.evaluate_program(), rows.micro_batches);
    fault::point("train.validation.loss");
    total.loss += sums.loss;
    total.num_targets += sums.num_targets;
  }
  return {total.loss / static_cast<double>(std::max<std::int64_t>(total.num_targets, 1)),
          total.num_targets};
}

std::string sample(ShapeRun& shape, const data::Tokenizer& tokenizer, std::int64_t num_tokens,
                   std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint32_t> start;
  tokenizer.encode({"\n", true, "sample"}, start);
  std::vector<std::int32_t> text(start.begin(), start.end());
  const std::int64_t sequence = shape.shape().sequence;
  const int ranks = shape.layout().cp * shape.layout().tp;
  for (std::int64_t i = 0; i < num_tokens; ++i) {
    fault::point("train.sample");
    const std::size_t seen = std::min(text.size(), static_cast<std::size_t>(sequence));
    const auto batch = context_row(std::span(text).last(seen), ranks);
    auto logits = shape.executor().logits(shape.evaluate_program(), batch,
                                          static_cast<std::int64_t>(seen) - 1);
    if (tokenizer.pad() != tokenizer.end())
      logits.at(tokenizer.pad()) = -std::numeric_limits<double>::infinity();
    // 53 random bits, the same on every standard library.
    const double u = static_cast<double>(random() >> 11) * 0x1.0p-53;
    const auto token = draw(logits, static_cast<std::int32_t>(tokenizer.num_tokens()), u);
    if (static_cast<std::uint32_t>(token) == tokenizer.end()) break;
    text.push_back(token);
  }
  return tokenizer.decode({text.begin() + std::ssize(start), text.end()});
}

}  // namespace ptrain::train
