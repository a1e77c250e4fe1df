#pragma once

#include "engine/kernels/cuda/launch.h"

namespace ptrain::kernels {

// Rows that one thread adds up before the sums of such runs are added, in their order: the same
// bits every time.
inline constexpr std::int64_t kRunRows = 64;

template <class T, class Term>
struct RunSums {
  std::int64_t rows, cols;
  Term term;
  const T* start;  // of the first run
  T* sums;         // [runs, cols]
  PT_DEVICE void operator()(std::int64_t run, std::int64_t i) const {
    const std::int64_t begin = run * kRunRows;
    const std::int64_t end = begin + kRunRows < rows ? begin + kRunRows : rows;
    T sum = run == 0 ? start[i] : T{0};
    for (std::int64_t t = begin; t < end; ++t) sum += term(t, i);
    sums[run * cols + i] = sum;
  }
};

template <class T>
struct AddRuns {
  std::int64_t runs, cols;
  const T* sums;
  T* to;
  PT_DEVICE void operator()(std::int64_t, std::int64_t i) const {
    T sum = sums[i];
    for (std::int64_t run = 1; run < runs; ++run) sum += sums[run * cols + i];
    to[i] = sum;
  }
};

// to[i] += the sum over all rows t of term(t, i), for every column i.
template <class T, class Term>
void add_column_sums(std::int64_t rows, std::int64_t cols, const Term& term, T* to) {
  if (rows == 0) return;
  const std::int64_t runs = (rows + kRunRows - 1) / kRunRows;
  const Scratch<T> sums(runs * cols);
  each_element(runs, cols, RunSums<T, Term>{rows, cols, term, to, sums.data()});
  each_element(1, cols, AddRuns<T>{runs, cols, sums.data(), to});
}

}  // namespace ptrain::kernels
