#pragma once

#include <vector>

#include "engine/layers/axis_share.h"
#include "engine/layers/layer.h"

namespace ptrain::layers {

// The tensors of one call: declared stash where the caller keeps it, scratch that ends with the
// call elsewhere. In rows of all tokens, or of the stream.
class Workspace {
 public:
  Workspace(const Context& context, DType dtype, const AxisShare& share)
      : context_(context),
        dtype_(dtype),
        tokens_(context.batch.num_tokens()),
        stream_rows_(share.own_rows(tokens_)) {}

  // Stash entry `index`, or scratch of the same shape where it is not kept.
  Tensor stash_or_scratch(std::size_t index, std::int64_t cols) {
    return stash_or_scratch(index, cols, dtype_);
  }
  Tensor stash_or_scratch(std::size_t index, std::int64_t cols, DType dtype) {
    return place(index, tokens_, cols, dtype);
  }
  Tensor stream_stash_or_scratch(std::size_t index, std::int64_t cols) {
    return stream_stash_or_scratch(index, cols, dtype_);
  }
  Tensor stream_stash_or_scratch(std::size_t index, std::int64_t cols, DType dtype) {
    return place(index, stream_rows_, cols, dtype);
  }
  // One row.
  Tensor call_stash_or_scratch(std::size_t index, std::int64_t cols, DType dtype) {
    return place(index, 1, cols, dtype);
  }
  // Empty where it is not kept, or not yet.
  Tensor stash_or_nothing(std::size_t index) const {
    return keeps(index) ? context_.stash[index] : Tensor();
  }
  bool keeps(std::size_t index) const;
  // [T, cols]
  Tensor scratch(std::int64_t cols);
  // [S, cols]
  Tensor stream_scratch(std::int64_t cols) { return stream_scratch(cols, dtype_); }
  Tensor stream_scratch(std::int64_t cols, DType dtype);

 private:
  Tensor place(std::size_t index, std::int64_t rows, std::int64_t cols, DType dtype);

  const Context& context_;
  DType dtype_;
  std::int64_t tokens_, stream_rows_;
  std::vector<Buffer> buffers_;
};

// A [rows, cols] tensor in a new buffer of the arena, which goes to `buffers`.
Tensor take_scratch(Arena& arena, DType dtype, std::int64_t rows, std::int64_t cols,
                    std::vector<Buffer>& buffers);

// `tensor` itself where it has this dtype; else room for as much, rows as far apart, in a new
// buffer.
Tensor itself_or_room(const Tensor& tensor, DType dtype, Arena& arena,
                      std::vector<Buffer>& buffers);

// to = from, in the dtype of `to`; nothing when both are the same memory.
void copy_tensor(const Tensor& from, const Tensor& to);
// For sums that always add: zero where this is the step's first write.
void begin_sum(const GradientTarget& target);

}  // namespace ptrain::layers
