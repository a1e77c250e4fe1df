#pragma once

#include <cstdint>
#include <span>

#include "engine/base/tensor.h"

namespace ptrain::kernels {

// A table may be bfloat16 where y is float32. A token that is kNoRow names no row: zeros are looked
// up, and nothing is added.
inline constexpr std::int32_t kNoRow = -1;

// y [T, H] = the rows of table [V, H] that the tokens name.
void gather_rows(const Tensor& table, std::span<const std::int32_t> tokens, const Tensor& y);

// y [T, H] += the rows that are named.
void add_rows(const Tensor& table, std::span<const std::int32_t> rows, const Tensor& y);

// Adds row t of dy [T, H] to row tokens[t] of dtable [V, H], in the order of t: the same bits every
// time.
void scatter_add_rows(const Tensor& dy, std::span<const std::int32_t> tokens, const Tensor& dtable);

}  // namespace ptrain::kernels
