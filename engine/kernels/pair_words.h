#pragma once

#include <cstdint>

#include "engine/kernels/gemm_tile.h"

// Numbers in float32 as words of two bfloat16, rounded to nearest, ties to even; denormals become
// zero. On processors with has_tile_units().
namespace ptrain::kernels {

struct FloatRows {
  const float* data;
  std::int64_t stride, rows, cols;
};

// Neighbours in a row: word r * words + p holds columns 2 p and 2 p + 1 of row r; columns are even.
void pair_columns(const FloatRows& from, std::int64_t words, Word* to);

// Neighbours in a column: word p * width + c holds column c of rows 2 p and 2 p + 1, for p below
// `pairs`; zero behind the rows and columns that there are. width: a multiple of 16.
void pair_rows(const FloatRows& from, std::int64_t pairs, std::int64_t width, Word* to);

}  // namespace ptrain::kernels
