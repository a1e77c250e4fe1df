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
  Tensor stash_or_scratch(std::size_t index, std::int64_t cols);
  bool keeps(std::size_t index) const;
  Tensor scratch(std::int64_t cols);  // [T, cols]

 private:
  const Context& context_;
  DType dtype_;
  std::vector<Buffer> buffers_;
};

// A [rows, cols] tensor in a new buffer of the arena, which goes to `buffers`.
Tensor take_scratch(Arena& arena, DType dtype, std::int64_t rows, std::int64_t cols,
                    std::vector<Buffer>& buffers);

// to = from, row by row; nothing when both are the same memory.
void copy_tensor(const Tensor& from, const Tensor& to);
void set_zero(const Tensor& tensor);
// For sums that always add: zero where this is the step's first write.
void begin_sum(const GradientTarget& target);

}  // namespace ptrain::layers
