#include "engine/layers/tensor_share.h"

#include "engine/base/engine_error.h"
#include "engine/layers/workspace.h"

namespace ptrain::layers {

std::int64_t TensorShare::own_rows(std::int64_t tokens) const {
  PT_CHECK(tokens % place_.size == 0);
  return tokens / place_.size;
}

Tensor TensorShare::own(const Tensor& whole) const {
  return whole.row_range(first_row(whole.rows), own_rows(whole.rows));
}

Tensor TensorShare::whole_with(const Tensor& part, Arena& arena,
                               std::vector<Buffer>& buffers) const {
  if (alone()) return part;
  const Tensor whole = take_scratch(arena, part.dtype, part.rows * place_.size, part.cols, buffers);
  copy_tensor(part, own(whole));
  return whole;
}

TensorShare::Parts TensorShare::parts_of(const Tensor& whole) const {
  PT_CHECK(whole.stride == whole.cols);
  Parts parts;
  const std::int64_t elements = own_rows(whole.rows) * whole.cols;
  for (int rank = 0; rank < place_.size; ++rank) {
    parts.offsets.push_back(rank * elements);
    parts.counts.push_back(elements);
  }
  return parts;
}

Exchange TensorShare::gather(Tensor whole) const {
  return {ExchangeKind::kAllGather, ExchangeAxis::kTensor,
          [whole, parts = parts_of(whole)](comm::Communicator& ranks) {
            return ranks.all_gather_v(whole.as<std::byte>(), whole.dtype, parts.offsets,
                                      parts.counts);
          }};
}

Exchange TensorShare::sum(Tensor whole) const {
  return {ExchangeKind::kReduceScatter, ExchangeAxis::kTensor,
          [whole, parts = parts_of(whole)](comm::Communicator& ranks) {
            return ranks.reduce_scatter_v(whole.as<std::byte>(), whole.dtype, parts.offsets,
                                          parts.counts);
          }};
}

}  // namespace ptrain::layers
