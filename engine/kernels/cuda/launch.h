#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/base/tensor.h"

// How the kernels of this folder and of engine/optim/cuda run. A kernel is a body that one block of
// kThreads threads runs; it is written in three words that keep the threads together:
//
//   block.each(n, f)        f(i) for i in [0, n), shared out over the threads; all wait at the end
//   block.fold(n, start, fold, term)   fold of term(0) .. term(n - 1), the same value for all
//   block.shared<T>()       memory of the block
//
// Between the words a body only computes what is the same for all threads. So the same source means
// the same to nvcc and to an ordinary compiler, which runs one thread after the other: so the tests
// run every kernel's arithmetic on a machine without a GPU. Bodies are passed by copy and hold no
// references and no host memory: spans come by Uploaded.
//
//   launch(num_blocks, shared_bytes, body)     body(block) for each block
//   Scratch<T>(n)           memory that kernels started in its scope use
//   Uploaded<T>(span)       a copy of host values that kernels read
//   clear(tensor)           all its bytes become zero
//   fetch(pointer)          waits for all kernels, and returns what lies there
namespace ptrain::kernels {

inline constexpr int kThreads = 256;

}  // namespace ptrain::kernels

#ifdef __CUDACC__
#include "engine/kernels/cuda/launch_gpu.h"
#else
#include "engine/kernels/cuda/launch_emulated.h"
#endif

namespace ptrain::kernels {

// A matrix as kernels see it.
template <class T>
struct View {
  explicit View(const Tensor& tensor) : data(tensor.as<T>()), stride(tensor.stride) {}
  PT_DEVICE T& operator()(std::int64_t row, std::int64_t col) const {
    return data[row * stride + col];
  }
  T* data;
  std::int64_t stride;
};

template <class T, class Term>
PT_DEVICE T sum_over(const Block& block, std::int64_t n, const Term& term) {
  return block.fold(
      n, T{0}, [](T a, T b) { return a + b; }, term);
}

template <class T, class Term>
PT_DEVICE T largest_of(const Block& block, std::int64_t n, const Term& term) {
  return block.fold(
      n, term(0), [](T a, T b) { return b > a ? b : a; }, term);
}

// Runs f(row, col) for a tile of kThreads columns of one row.
template <class F>
struct EachElement {
  std::int64_t cols, tiles;
  F f;
  PT_DEVICE void operator()(const Block& block) const {
    const std::int64_t row = block.index() / tiles, first = block.index() % tiles * kThreads;
    const std::int64_t rest = cols - first;
    block.each(rest < kThreads ? rest : kThreads, [&](std::int64_t i) { f(row, first + i); });
  }
};

// f(row, col) for every element.
template <class F>
void each_element(std::int64_t rows, std::int64_t cols, const F& f) {
  const std::int64_t tiles = (cols + kThreads - 1) / kThreads;
  launch(rows * tiles, 0, EachElement<F>{cols, tiles, f});
}

}  // namespace ptrain::kernels
