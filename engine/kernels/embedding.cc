#include "engine/kernels/embedding.h"

#include <algorithm>

#include "engine/base/engine_error.h"
#include "engine/kernels/convert.h"
#include "engine/kernels/rows.h"

namespace ptrain::kernels {
namespace {

// f(t, the row that token t names), where it names one.
template <class F>
void each_row(std::span<const std::int32_t> tokens, const Tensor& table, const F& f) {
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    PT_CHECK(tokens[t] >= kNoRow && tokens[t] < table.rows);
    if (tokens[t] != kNoRow)
      f(static_cast<std::int64_t>(t), table.row_range(std::int64_t{tokens[t]}, 1));
  }
}

}  // namespace

void gather_rows(const Tensor& table, std::span<const std::int32_t> tokens, const Tensor& y) {
  PT_CHECK(static_cast<std::int64_t>(tokens.size()) == y.rows && table.cols == y.cols &&
           wide_of(table.dtype) == y.dtype);
  if (std::ranges::find(tokens, kNoRow) != tokens.end()) set_zero(y);
  each_row(tokens, table,
           [&](std::int64_t t, const Tensor& row) { convert(row, y.row_range(t, 1)); });
}

void add_rows(const Tensor& table, std::span<const std::int32_t> rows, const Tensor& y) {
  PT_CHECK(static_cast<std::int64_t>(rows.size()) == y.rows && table.cols == y.cols &&
           wide_of(table.dtype) == y.dtype);
  each_row(rows, table, [&](std::int64_t t, const Tensor& row) { add(row, y.row_range(t, 1)); });
}

void scatter_add_rows(const Tensor& dy, std::span<const std::int32_t> tokens,
                      const Tensor& dtable) {
  PT_CHECK(static_cast<std::int64_t>(tokens.size()) == dy.rows && dtable.cols == dy.cols);
  each_row(tokens, dtable,
           [&](std::int64_t t, const Tensor& row) { add(dy.row_range(t, 1), row); });
}

}  // namespace ptrain::kernels
