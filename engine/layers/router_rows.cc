#include "engine/layers/router_rows.h"

#include <algorithm>
#include <numeric>

#include "engine/base/engine_error.h"
#include "engine/kernels/router.h"

namespace ptrain::layers {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

data::SharedRows unshared(const data::MicroBatch& batch) {
  data::SharedRows rows{std::vector<std::int64_t>(at(batch.num_tokens())), batch.documents, {}};
  std::iota(rows.tokens.begin(), rows.tokens.end(), 0);
  for (const data::DocumentSpan& span : batch.documents)
    rows.num_targets.push_back(num_targets_in(batch, span));
  return rows;
}

// By token of the whole rows.
std::vector<std::int32_t> count_rows(const data::SharedRows& whole, std::int64_t sequence,
                                     RouterRows& rows) {
  std::vector<std::int32_t> row_of(whole.tokens.size(), -1);
  for (std::size_t i = 0; i < whole.documents.size(); ++i) {
    const data::DocumentSpan& span = whole.documents[i];
    if (whole.num_targets[i] == 0) continue;
    const std::int64_t row = span.begin / sequence;
    rows.num_tokens[at(row)] += span.end - span.begin;
    rows.num_targets[at(row)] += whole.num_targets[i];
    std::fill(row_of.begin() + span.begin, row_of.begin() + span.end,
              static_cast<std::int32_t>(row));
  }
  return row_of;
}

}  // namespace

double RouterRows::targets_per_token(std::int64_t row) const {
  const auto tokens = static_cast<double>(std::max<std::int64_t>(num_tokens[at(row)], 1));
  return static_cast<double>(num_targets[at(row)]) / tokens;
}

RouterRows router_rows(const data::MicroBatch& batch, const RowShare& share) {
  const bool is_shared = !batch.shared_rows.tokens.empty();
  const data::SharedRows own = is_shared ? data::SharedRows() : unshared(batch);
  const data::SharedRows& whole = is_shared ? batch.shared_rows : own;
  const std::int64_t num_tokens = std::ssize(whole.tokens);
  RouterRows rows;
  rows.num_tokens.assign(at(batch.rows), 0);
  rows.num_targets.assign(at(batch.rows), 0);
  const auto row_of = count_rows(whole, num_tokens / std::max<std::int64_t>(batch.rows, 1), rows);
  rows.row_of.resize(at(num_tokens));
  rows.in_order.resize(at(num_tokens));
  for (std::size_t place = 0; place < whole.tokens.size(); ++place) {
    const auto token = at(whole.tokens[place]);
    rows.row_of[place] = row_of[token];
    rows.in_order[token] = static_cast<std::int64_t>(place);
  }
  rows.own_begin = share.first_row(num_tokens);
  rows.num_own = share.own_rows(num_tokens);
  return rows;
}

std::vector<std::int64_t> count_choices(std::span<const std::int32_t> row_of, std::int64_t num_rows,
                                        const Tensor& chosen, std::int64_t num_experts) {
  PT_CHECK(std::ssize(row_of) == chosen.rows);
  std::vector<std::int64_t> counts(at(num_rows * num_experts), 0);
  for (std::int64_t t = 0; t < chosen.rows; ++t) {
    const std::int64_t row = row_of[at(t)];
    const auto* choice = chosen.as<std::int32_t>() + t * chosen.stride;
    for (std::int64_t j = 0; j < chosen.cols && row >= 0; ++j)
      ++counts[at(row * num_experts + kernels::expert_of(choice[j]))];
  }
  return counts;
}

}  // namespace ptrain::layers
