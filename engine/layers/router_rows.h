#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/tensor.h"
#include "engine/data/batch.h"
#include "engine/layers/row_share.h"

namespace ptrain::layers {

// What routers count of a micro-batch, row by row. Documents without a target, such as the padding
// at a row's end, are left out. Where ranks share rows these are the whole rows, and the tokens
// those of all ranks, in the order in which the ranks hold them.
struct RouterRows {
  std::vector<std::int32_t> row_of;       // of every token; -1: left out
  std::vector<std::int64_t> in_order;     // the tokens as they follow each other in the rows
  std::vector<std::int64_t> num_tokens;   // of a row, those that count
  std::vector<std::int64_t> num_targets;  // of a row
  std::int64_t own_begin = 0, num_own = 0;  // this rank's tokens among them
  std::int64_t num_rows() const { return static_cast<std::int64_t>(num_tokens.size()); }
  std::span<const std::int32_t> row_of_own() const {
    return std::span(row_of).subspan(static_cast<std::size_t>(own_begin),
                                     static_cast<std::size_t>(num_own));
  }
  double targets_per_token(std::int64_t row) const;
};
RouterRows router_rows(const data::MicroBatch& batch, const RowShare& share);

// How often each expert was chosen in a row, by [row * num_experts + expert], whether it had room
// or not. chosen [tokens, top_k], int32; row_of these tokens.
std::vector<std::int64_t> count_choices(std::span<const std::int32_t> row_of, std::int64_t num_rows,
                                        const Tensor& chosen, std::int64_t num_experts);

}  // namespace ptrain::layers
