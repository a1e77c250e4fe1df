#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/tensor.h"

namespace ptrain::kernels {

// What experts work on, sorted by expert: rows [begin[e], begin[e + 1]) are those of expert e.
struct ExpertRuns {
  std::vector<std::int64_t> begin;
  std::int64_t num_rows() const { return begin.back(); }
  std::int64_t num_experts() const { return static_cast<std::int64_t>(begin.size()) - 1; }
  std::int64_t begin_of(std::int64_t e) const { return begin[static_cast<std::size_t>(e)]; }
  std::int64_t of_expert(std::int64_t e) const { return begin_of(e + 1) - begin_of(e); }
  // The rows of expert e in a tensor that has all of them.
  Tensor rows_of(const Tensor& tensor, std::int64_t e) const;
};

// The choices of all tokens sorted by expert, and by token and slot within one: row r is slot
// `slots[r]` = token * top_k + j.
struct ExpertRows : ExpertRuns {
  std::vector<std::int32_t> slots;   // one a row
  std::vector<std::int32_t> row_of;  // of every slot; -1: dropped
  std::int64_t top_k = 1;
};

// chosen [T, top_k], int32, as choose_experts leaves it.
ExpertRows sort_by_expert(const Tensor& chosen, std::int64_t num_experts);

// y [rows, n] = the token's row of x [T, n], in the dtype of y.
void take_rows(const ExpertRows& rows, const Tensor& x, const Tensor& y);
// y [T, n] += the sum over a token's slots, in their order, of x [rows, n]; times weights [T,
// top_k] where they are not empty.
void add_slots(const ExpertRows& rows, const Tensor& x, const Tensor& weights, const Tensor& y);
// y [rows, 1] = the weight of the slot, and the other way: weights [T, top_k] += x [rows, 1].
void take_weights(const ExpertRows& rows, const Tensor& weights, const Tensor& y);
void add_weights(const ExpertRows& rows, const Tensor& x, const Tensor& weights);
// dots [rows, 1] of the rows of a and b.
void dot_rows(const Tensor& a, const Tensor& b, const Tensor& dots);
// x [rows, n] *= factors [rows, 1].
void scale_rows(const Tensor& factors, const Tensor& x);

}  // namespace ptrain::kernels
