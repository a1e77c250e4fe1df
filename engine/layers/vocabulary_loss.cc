#include "engine/layers/vocabulary_loss.h"

#include <algorithm>

#include "engine/base/engine_error.h"
#include "engine/base/planted.h"
#include "engine/kernels/rows.h"
#include "engine/layers/workspace.h"

namespace ptrain::layers {
namespace {

std::int64_t num_from(std::int32_t least, std::span<const std::int32_t> targets) {
  return std::ranges::count_if(targets, [&](auto target) { return target >= least; });
}

}  // namespace

VocabularyLoss::VocabularyLoss(const model::Architecture& architecture,
                               const model::ParameterSpec& matrix)
    : place_(architecture.head), part_(matrix) {}

void VocabularyLoss::add(const Context& context, std::int64_t begin, const Tensor& logits,
                         kernels::LogitsUse use, LossSums& sums) const {
  const auto targets =
      std::span(context.batch.targets)
          .subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(logits.rows));
  const double loss = place_.size == 1 ? kernels::cross_entropy(logits, targets, use)
                                       : over_parts(context, targets, logits, use);
  if (planted(Bug::kMeanOfMeans) && use == kernels::LogitsUse::kGradient)
    kernels::scale(1.0 / static_cast<double>(num_from(0, context.batch.targets)), logits);
  if (place_.rank != place_.first_holder && !planted(Bug::kLossOnEveryRank)) return;
  sums.loss += loss;
  const std::int32_t least = planted(Bug::kPaddingTrained) ? data::kNoTarget : 0;
  sums.num_targets += num_from(least, targets);
}

double VocabularyLoss::over_parts(const Context& context, std::span<const std::int32_t> targets,
                                  const Tensor& logits, kernels::LogitsUse use) const {
  PT_CHECK(context.head != nullptr);
  const std::vector<std::int32_t> own = part_.own(targets);
  std::vector<Buffer> buffers;
  const Tensor statistics = take_scratch(context.arena, DType::kFloat64, place_.size * logits.rows,
                                         kernels::kPartStatistics, buffers);
  const Tensor mine = statistics.row_range(place_.rank * logits.rows, logits.rows);
  kernels::part_exponentials(logits, own, mine);
  if (planted(Bug::kVocabularyRepeated)) kernels::scale(place_.size, mine.columns(1, 1));
  if (planted(Bug::kLocalVocabulary))
    return kernels::part_cross_entropy(logits, {targets, own, 0}, mine, use);
  std::vector<std::int64_t> offsets, counts;
  for (int rank = 0; rank < place_.size; ++rank) {
    offsets.push_back(rank * mine.num_elements());
    counts.push_back(mine.num_elements());
  }
  context.head->all_gather_v(statistics.as<std::byte>(), DType::kFloat64, offsets, counts)->wait();
  return kernels::part_cross_entropy(logits, {targets, own, place_.rank}, statistics, use);
}

// A row at a time: the columns of a rank lie together there.
void VocabularyLoss::gather(const Context& context, const Tensor& logits) const {
  PT_CHECK(context.head != nullptr);
  std::vector<std::int64_t> offsets, counts;
  for (int rank = 0; rank < place_.size; ++rank) {
    offsets.push_back(place_.first_row(part_.whole(), rank));
    counts.push_back(place_.first_row(part_.whole(), rank + 1) - offsets.back());
  }
  for (std::int64_t row = 0; row < logits.rows; ++row)
    context.head
        ->all_gather_v(logits.row_range(row, 1).as<std::byte>(), logits.dtype, offsets, counts)
        ->wait();
}

}  // namespace ptrain::layers
