#pragma once

#include <span>
#include <vector>

#include "engine/kernels/expert_rows.h"
#include "engine/layers/layer.h"
#include "engine/layers/places.h"

namespace ptrain::layers {

// The linears of all experts of a layer, each of which multiplies the rows of its own expert; all
// experts' products are one call. An expert's matrices follow each other, and so do the experts.
class ExpertLinears {
 public:
  // first: the role of the first expert's first matrix; each expert has `size` of them.
  ExpertLinears(const Places& places, model::Role first, std::size_t size)
      : weights_(places.parameter(first)), size_(size) {}

  // y may be of the weights' dtype, or what it is added up in.
  void forward(const Context& context, const kernels::ExpertRuns& rows, const Tensor& x,
               const Tensor& y) const;
  void backward(const Context& context, const kernels::ExpertRuns& rows, const Tensor& dy,
                const Tensor& dx) const;
  // An expert without rows has a gradient too: zero.
  void queue(const kernels::ExpertRuns& rows, const Tensor& x, const Tensor& dy,
             std::span<const GradientTarget> gradients, std::vector<WeightProduct>& products) const;

 private:
  void multiply(const Context& context, const kernels::ExpertRuns& rows, std::int64_t begin,
                const Tensor& x, const Tensor& y) const;

  template <class Item>
  std::span<const Item> of_expert(std::span<const Item> all, std::int64_t e) const {
    return all.subspan(weights_ + static_cast<std::size_t>(e) * size_, size_);
  }

  std::size_t weights_, size_;
};

}  // namespace ptrain::layers
