#pragma once

#include <cstdint>

#include "core/base/divide.h"
#include "core/program/block_sizes.h"
#include "engine/base/arena.h"
#include "engine/base/tensor.h"

namespace ptrain::kernels {

// Scratch [rows, cols], rows apart by a multiple of a cache line.
struct Scratch {
  Scratch(Arena& arena, DType dtype, std::int64_t rows, std::int64_t cols)
      : buffer(arena, program::MemoryClass::kTemporary, rows * padded(cols) * size_of(dtype)),
        tensor{buffer.data(), dtype, rows, cols, padded(cols)} {}
  static std::int64_t padded(std::int64_t cols) { return round_up(cols, program::kScorePadding); }
  Buffer buffer;
  Tensor tensor;
};

}  // namespace ptrain::kernels
