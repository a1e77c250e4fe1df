#pragma once

#include <vector>

#include "engine/layers/layer.h"

namespace ptrain::layers {

// The tensors of one call: declared stash where the caller keeps it, scratch that ends with the
// call elsewhere.
class Workspace {
 public:
  Workspace(const Context& context, DType dtype) : context_(context), dtype_(dtype) {}

  // Stash entry `index`, or scratch of the same shape where it is not kept.
  Tensor stash_or_scratch(std::size_t index, std::int64_t cols) {
    return stash_or_scratch(index, cols, dtype_);
  }
  Tensor stash_or_scratch(std::size_t index, std::int64_t cols, DType dtype);
  bool keeps(std::size_t index) const;
  // [T, cols]
  Tensor scratch(std::int64_t cols) { return scratch(cols, dtype_); }
  Tensor scratch(std::int64_t cols, DType dtype);

 private:
  const Context& context_;
  DType dtype_;
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
