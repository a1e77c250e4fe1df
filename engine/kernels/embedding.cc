#include "engine/kernels/embedding.h"

#include "engine/base/engine_error.h"
#include "engine/kernels/convert.h"
#include "engine/kernels/rows.h"

namespace ptrain::kernels {
namespace {

std::int64_t checked_token(std::span<const std::int32_t> tokens, std::int64_t t,
                           const Tensor& table) {
  const std::int64_t token = tokens[static_cast<std::size_t>(t)];
  PT_CHECK(token >= 0 && token < table.rows);
  return token;
}

}  // namespace

void gather_rows(const Tensor& table, std::span<const std::int32_t> tokens, const Tensor& y) {
  PT_CHECK(static_cast<std::int64_t>(tokens.size()) == y.rows && table.cols == y.cols &&
           wide_of(table.dtype) == y.dtype);
  for (std::int64_t t = 0; t < y.rows; ++t)
    convert(table.row_range(checked_token(tokens, t, table), 1), y.row_range(t, 1));
}

void add_rows(const Tensor& table, std::span<const std::int32_t> rows, const Tensor& y) {
  PT_CHECK(static_cast<std::int64_t>(rows.size()) == y.rows && table.cols == y.cols &&
           wide_of(table.dtype) == y.dtype);
  for (std::int64_t t = 0; t < y.rows; ++t)
    add(table.row_range(checked_token(rows, t, table), 1), y.row_range(t, 1));
}

void scatter_add_rows(const Tensor& dy, std::span<const std::int32_t> tokens,
                      const Tensor& dtable) {
  PT_CHECK(static_cast<std::int64_t>(tokens.size()) == dy.rows && dtable.cols == dy.cols);
  for (std::int64_t t = 0; t < dy.rows; ++t)
    add(dy.row_range(t, 1), dtable.row_range(checked_token(tokens, t, dtable), 1));
}

}  // namespace ptrain::kernels
