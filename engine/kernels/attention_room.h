#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/base/divide.h"
#include "core/program/attention_bytes.h"
#include "core/program/block_sizes.h"
#include "engine/base/arena.h"
#include "engine/base/engine_error.h"
#include "engine/kernels/attention.h"
#include "engine/kernels/gemm_tile.h"

namespace ptrain::kernels {

inline program::AttentionBytes bytes_of(const AttentionShape& shape, DType dtype) {
  return {size_of(dtype), shape.head_dim, shape.values_of_head(),
          shape.products == DType::kBFloat16};
}

// Scratch of one call of attention, of the bytes that were predicted for it.
class AttentionRoom {
 public:
  AttentionRoom(Arena& arena, std::int64_t bytes)
      : buffer_(arena, program::MemoryClass::kTemporary, bytes),
        next_(static_cast<std::byte*>(buffer_.data())),
        left_(bytes) {}

  // [rows, cols], rows apart by a multiple of a cache line.
  Tensor tensor(DType dtype, std::int64_t rows, std::int64_t cols) {
    const std::int64_t stride = round_up(cols, program::kScorePadding);
    return {take(rows * stride * size_of(dtype)), dtype, rows, cols, stride};
  }
  Word* words(std::int64_t count) { return static_cast<Word*>(take(count * std::int64_t{4})); }

 private:
  void* take(std::int64_t bytes) {
    PT_CHECK(bytes <= left_);
    left_ -= bytes;
    return std::exchange(next_, next_ + bytes);
  }
  Buffer buffer_;
  std::byte* next_;
  std::int64_t left_;
};

}  // namespace ptrain::kernels
