#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/tensor.h"
#include "engine/data/batch.h"

namespace ptrain::layers {

// What routers count of a micro-batch, row by row. Documents without a target, such as the padding
// at a row's end, are left out.
struct RouterRows {
  std::vector<std::int32_t> row_of;       // of every token; -1: left out
  std::vector<std::int64_t> num_tokens;   // of a row, those that count
  std::vector<std::int64_t> num_targets;  // of a row
  std::int64_t num_rows() const { return static_cast<std::int64_t>(num_tokens.size()); }
  double targets_per_token(std::int64_t row) const;
};
RouterRows router_rows(const data::MicroBatch& batch);

// How often each expert was chosen in a row, by [row * num_experts + expert], whether it had room
// or not. chosen [T, top_k], int32.
std::vector<std::int64_t> count_choices(const RouterRows& rows, const Tensor& chosen,
                                        std::int64_t num_experts);

}  // namespace ptrain::layers
