#include "engine/layers/router_rows.h"

#include <algorithm>
#include <span>

#include "engine/kernels/router.h"

namespace ptrain::layers {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

}  // namespace

double RouterRows::targets_per_token(std::int64_t row) const {
  const auto tokens = static_cast<double>(std::max<std::int64_t>(num_tokens[at(row)], 1));
  return static_cast<double>(num_targets[at(row)]) / tokens;
}

RouterRows router_rows(const data::MicroBatch& batch) {
  RouterRows rows;
  rows.row_of.assign(at(batch.num_tokens()), -1);
  rows.num_tokens.assign(at(batch.rows), 0);
  rows.num_targets.assign(at(batch.rows), 0);
  for (const data::DocumentSpan& span : batch.documents) {
    const auto targets =
        std::span(batch.targets).subspan(at(span.begin), at(span.end - span.begin));
    const std::int64_t count = std::ranges::count_if(
        targets, [](std::int32_t target) { return target != data::kNoTarget; });
    if (count == 0) continue;
    const std::int64_t row = span.begin / batch.sequence;
    rows.num_tokens[at(row)] += span.end - span.begin;
    rows.num_targets[at(row)] += count;
    std::fill(rows.row_of.begin() + span.begin, rows.row_of.begin() + span.end,
              static_cast<std::int32_t>(row));
  }
  return rows;
}

std::vector<std::int64_t> count_choices(const RouterRows& rows, const Tensor& chosen,
                                        std::int64_t num_experts) {
  std::vector<std::int64_t> counts(at(rows.num_rows() * num_experts), 0);
  for (std::int64_t t = 0; t < chosen.rows; ++t) {
    const std::int64_t row = rows.row_of[at(t)];
    const auto* choice = chosen.as<std::int32_t>() + t * chosen.stride;
    for (std::int64_t j = 0; j < chosen.cols && row >= 0; ++j)
      ++counts[at(row * num_experts + kernels::expert_of(choice[j]))];
  }
  return counts;
}

}  // namespace ptrain::layers
