#include "engine/layers/workspace.h"

#include "engine/base/engine_error.h"
#include "engine/kernels/convert.h"
#include "engine/kernels/rows.h"

namespace ptrain::layers {

Tensor Workspace::place(std::size_t index, std::int64_t rows, std::int64_t cols, DType dtype) {
  if (!keeps(index)) return take_scratch(context_.arena, dtype, rows, cols, buffers_);
  const Tensor& kept = context_.stash[index];
  PT_CHECK(kept.rows == rows && kept.cols == cols && kept.dtype == dtype);
  return kept;
}

bool Workspace::keeps(std::size_t index) const {
  return index < context_.stash.size() && !context_.stash[index].empty();
}

Tensor Workspace::scratch(std::int64_t cols) {
  return take_scratch(context_.arena, dtype_, tokens_, cols, buffers_);
}

Tensor Workspace::stream_scratch(std::int64_t cols, DType dtype) {
  return take_scratch(context_.arena, dtype, stream_rows_, cols, buffers_);
}

Tensor take_scratch(Arena& arena, DType dtype, std::int64_t rows, std::int64_t cols,
                    std::vector<Buffer>& buffers) {
  buffers.emplace_back(arena, program::MemoryClass::kTemporary, rows * cols * size_of(dtype));
  return contiguous(buffers.back().data(), dtype, rows, cols);
}

Tensor itself_or_room(const Tensor& tensor, DType dtype, Arena& arena,
                      std::vector<Buffer>& buffers) {
  if (tensor.dtype == dtype) return tensor;
  return take_scratch(arena, dtype, tensor.rows, tensor.stride, buffers).columns(0, tensor.cols);
}

void copy_tensor(const Tensor& from, const Tensor& to) {
  if (from.data != to.data) kernels::convert(from, to);
}

void begin_sum(const GradientTarget& target) {
  if (!target.accumulate) kernels::set_zero(target.tensor);
}

}  // namespace ptrain::layers
