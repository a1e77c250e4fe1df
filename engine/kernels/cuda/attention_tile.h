#pragma once

#include <cmath>

#include "engine/kernels/attention.h"
#include "engine/kernels/cuda/launch.h"

namespace ptrain::kernels {

// A matrix in a block's memory. Rows lie an odd number of elements apart: threads that read one
// column of many rows then meet no other in a memory bank.
template <class T>
struct Tile {
  T* data;
  int cols;
  PT_DEVICE T& operator()(int row, int col) const { return data[row * (cols | 1) + col]; }
};

// Hands out a block's memory.
template <class T>
struct Carver {
  T* free;
  PT_DEVICE Tile<T> tile(int rows, int cols) {
    const Tile<T> result{free, cols};
    free += elements(rows, cols);
    return result;
  }
  PT_DEVICE T* row(int size) { return tile(1, size).data; }
  static constexpr int elements(int rows, int cols) { return rows * (cols | 1); }
};

// What one document's attention is made of. Rows of the views are tokens.
template <class T>
struct Document {
  Document(const AttentionShape& shape, const Tensor& tensor)
      : qkv(tensor),
        size(tensor.rows),
        dim(static_cast<int>(shape.head_dim)),
        group(shape.num_heads / shape.num_kv_heads),
        keys(shape.query_cols()),
        values(keys + shape.num_kv_heads * shape.head_dim),
        scale(T{1} / std::sqrt(static_cast<T>(shape.root_of()))),
        softcap(static_cast<T>(shape.softcap)),
        window(shape.window) {}

  PT_DEVICE bool sees(std::int64_t query, std::int64_t key) const {
    return key <= query && (window == 0 || query - key < window);
  }
  PT_DEVICE T score(T product) const {
    return softcap > 0 ? softcap * std::tanh(product * scale / softcap) : product * scale;
  }
  // Of a score, by the product.
  PT_DEVICE T slope(T score_value) const {
    const T share = softcap > 0 ? score_value / softcap : T{0};
    return (T{1} - share * share) * scale;
  }
  PT_DEVICE T& query(std::int64_t t, std::int64_t head, int j) const {
    return qkv(t, head * dim + j);
  }
  PT_DEVICE T& key(std::int64_t t, std::int64_t kv_head, int j) const {
    return qkv(t, keys + kv_head * dim + j);
  }
  PT_DEVICE T& value(std::int64_t t, std::int64_t kv_head, int j) const {
    return qkv(t, values + kv_head * dim + j);
  }

  View<T> qkv;
  std::int64_t size;
  int dim;
  std::int64_t group;         // query heads of a key head
  std::int64_t keys, values;  // first columns
  T scale, softcap;
  std::int64_t window;
};

// Tokens [first, first + rows) of a document.
struct Span {
  std::int64_t first;
  int rows;
};

PT_DEVICE inline Span span_at(std::int64_t first, std::int64_t end, int most) {
  return {first, static_cast<int>(end - first < most ? end - first : most)};
}

// The first key that any of the queries from `first` on sees.
PT_DEVICE inline std::int64_t first_key(std::int64_t first, std::int64_t window) {
  return window > 0 && first + 1 > window ? first + 1 - window : 0;
}

template <class T>
PT_DEVICE T product(const Tile<T>& a, int row_a, const Tile<T>& b, int row_b) {
  T sum{0};
  for (int j = 0; j < a.cols; ++j) sum += a(row_a, j) * b(row_b, j);
  return sum;
}

// f(row, col) for a matrix, shared out over the threads of a block.
template <class F>
PT_DEVICE void each_of(const Block& block, int rows, int cols, const F& f) {
  block.each(rows * cols, [&](std::int64_t i) {
    const int index = static_cast<int>(i);
    f(index / cols, index % cols);
  });
}

void check_attention(const AttentionShape& shape, const Tensor& qkv);

}  // namespace ptrain::kernels
