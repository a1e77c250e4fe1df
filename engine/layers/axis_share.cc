#include "engine/layers/axis_share.h"

#include "engine/base/engine_error.h"
#include "engine/layers/workspace.h"

namespace ptrain::layers {

std::int64_t AxisShare::rows_of(int rank, std::int64_t rows_of_whole) const {
  PT_CHECK(rows_of_whole % holders_.count == 0);
  return holds(rank) ? rows_of_whole / holders_.count : 0;
}

Tensor AxisShare::own(const Tensor& whole) const {
  return whole.row_range(first_row(whole.rows), own_rows(whole.rows));
}

Tensor AxisShare::whole_with(const Tensor& part, Arena& arena, std::vector<Buffer>& buffers) const {
  if (alone()) return part;
  const Tensor whole =
      take_scratch(arena, part.dtype, part.rows * holders_.count, part.cols, buffers);
  copy_tensor(part, own(whole));
  return whole;
}

AxisShare::Parts AxisShare::parts_of(const Tensor& whole) const {
  PT_CHECK(whole.stride == whole.cols);
  Parts parts;
  std::int64_t offset = 0;
  for (int rank = 0; rank < place_.size; ++rank) {
    parts.offsets.push_back(offset);
    parts.counts.push_back(rows_of(rank, whole.rows) * whole.cols);
    offset += parts.counts.back();
  }
  return parts;
}

Exchange AxisShare::gather(Tensor whole) const {
  return {
      ExchangeKind::kAllGather, axis_, [whole, parts = parts_of(whole)](comm::Communicator& ranks) {
        return ranks.all_gather_v(whole.as<std::byte>(), whole.dtype, parts.offsets, parts.counts);
      }};
}

Exchange AxisShare::sum(Tensor whole) const {
  return {ExchangeKind::kReduceScatter, axis_,
          [whole, parts = parts_of(whole)](comm::Communicator& ranks) {
            return ranks.reduce_scatter_v(whole.as<std::byte>(), whole.dtype, parts.offsets,
                                          parts.counts);
          }};
}

}  // namespace ptrain::layers
