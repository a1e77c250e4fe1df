#include <algorithm>
#include <numeric>
#include <vector>

#include "engine/base/engine_error.h"
#include "engine/kernels/cuda/launch.h"
#include "engine/kernels/embedding.h"

namespace ptrain::kernels {
namespace {

void check_tokens(std::span<const std::int32_t> tokens, const Tensor& table) {
  PT_CHECK(std::ranges::all_of(
      tokens, [&](std::int32_t token) { return token >= kNoRow && token < table.rows; }));
}

template <class T, class N>
struct Gather {
  View<N> table;
  View<T> y;
  const std::int32_t* tokens;
  bool adds;
  PT_DEVICE void operator()(std::int64_t t, std::int64_t i) const {
    const T value = tokens[t] == kNoRow ? T{0} : T(table(tokens[t], i));
    y(t, i) = adds ? y(t, i) + value : value;
  }
};

void gather(const Tensor& table, std::span<const std::int32_t> tokens, const Tensor& y, bool adds) {
  PT_CHECK(static_cast<std::int64_t>(tokens.size()) == y.rows && table.cols == y.cols &&
           wide_of(table.dtype) == y.dtype);
  check_tokens(tokens, table);
  const Uploaded<std::int32_t> uploaded(tokens);
  dispatch_compute(table.dtype, [&]<class T, class N>(T, N) {
    each_element(y.rows, y.cols, Gather<T, N>{View<N>(table), View<T>(y), uploaded.data(), adds});
  });
}

// Rows of dy by their token, those of one token in their order: `rows` of the k-th token are
// [begins[k], begins[k + 1]).
struct ByToken {
  std::vector<std::int32_t> tokens, begins, rows;
};

ByToken sort_by_token(std::span<const std::int32_t> tokens) {
  ByToken sorted;
  sorted.rows.resize(tokens.size());
  std::iota(sorted.rows.begin(), sorted.rows.end(), 0);
  std::erase_if(sorted.rows,
                [&](std::int32_t row) { return tokens[static_cast<std::size_t>(row)] == kNoRow; });
  const auto token_of = [&](std::int32_t row) { return tokens[static_cast<std::size_t>(row)]; };
  std::ranges::stable_sort(sorted.rows, {}, token_of);
  for (std::size_t i = 0; i < sorted.rows.size(); ++i) {
    const std::int32_t token = token_of(sorted.rows[i]);
    if (!sorted.tokens.empty() && sorted.tokens.back() == token) continue;
    sorted.tokens.push_back(token);
    sorted.begins.push_back(static_cast<std::int32_t>(i));
  }
  sorted.begins.push_back(static_cast<std::int32_t>(sorted.rows.size()));
  return sorted;
}

// One token's row of the table.
template <class T, class N>
struct ScatterAdd {
  View<N> dy;
  View<T> dtable;
  const std::int32_t *tokens, *begins, *rows;
  PT_DEVICE void operator()(std::int64_t k, std::int64_t i) const {
    T sum = dtable(tokens[k], i);
    for (std::int32_t r = begins[k]; r < begins[k + 1]; ++r) sum += T(dy(rows[r], i));
    dtable(tokens[k], i) = sum;
  }
};

}  // namespace

void gather_rows(const Tensor& table, std::span<const std::int32_t> tokens, const Tensor& y) {
  gather(table, tokens, y, false);
}

void add_rows(const Tensor& table, std::span<const std::int32_t> rows, const Tensor& y) {
  gather(table, rows, y, true);
}

void scatter_add_rows(const Tensor& dy, std::span<const std::int32_t> tokens,
                      const Tensor& dtable) {
  PT_CHECK(static_cast<std::int64_t>(tokens.size()) == dy.rows && dtable.cols == dy.cols &&
           wide_of(dy.dtype) == dtable.dtype);
  check_tokens(tokens, dtable);
  const ByToken sorted = sort_by_token(tokens);
  const Uploaded<std::int32_t> names(sorted.tokens), begins(sorted.begins), rows(sorted.rows);
  dispatch_compute(dy.dtype, [&]<class T, class N>(T, N) {
    each_element(
        std::ssize(sorted.tokens), dy.cols,
        ScatterAdd<T, N>{View<N>(dy), View<T>(dtable), names.data(), begins.data(), rows.data()});
  });
}

}  // namespace ptrain::kernels
