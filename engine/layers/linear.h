#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/layers/layer.h"
#include "engine/layers/places.h"

namespace ptrain::layers {

// How a linear's weight lies in memory.
enum class Stored { kOutIn, kInOut };

struct LinearOptions {
  Stored stored = Stored::kOutIn;
  bool accumulate = false;  // y += instead of y =
};

// Weights [out_i, in] that lie one after the other in memory as one.
std::vector<Tensor> joined(std::span<const Tensor> weights);

// Several linears that read the same x, such as q, k, v: results side by side in the columns of one
// y. Weights are multiplied joined.

// y [T, sum of out_i] = x [T, in] times each weight.
void linear(const Tensor& x, std::span<const Tensor> weights, const Tensor& y,
            LinearOptions options = {});

// dx [T, in] = dy [T, sum of out_i] times the weights.
void linear_input_gradient(const Tensor& dy, std::span<const Tensor> weights, const Tensor& dx,
                           Stored stored = Stored::kOutIn);

// Queues the weights' gradients.
void queue_weight_gradient(const Tensor& x, const Tensor& dy,
                           std::span<const GradientTarget> targets,
                           std::vector<WeightProduct>& products, Stored stored = Stored::kOutIn);

// Products into a y of the weights' dtype, by way of a block of sums: `multiply` makes the rows of
// y from `begin` on that the block has.
void multiply_in_blocks(
    const Context& context, const Tensor& y,
    const std::function<void(std::int64_t begin, const Tensor& block)>& multiply);

// The linears of one run in a layer's parameters: their weights follow each other, and so do their
// biases, where they have some. What weights multiply is of their dtype; products come as sums, in
// wide_of() it.
class Linears {
 public:
  // first, bias: the roles of the first weight and the first bias of `size` linears.
  Linears(const Places& places, model::Role first, model::Role bias, std::size_t size);

  // y may also be of the weights' dtype, but not where it accumulates.
  void forward(const Context& context, const Tensor& x, const Tensor& y,
               bool accumulate = false) const;
  // dx, and the biases' gradients.
  void backward(const Context& context, std::span<const GradientTarget> gradients, const Tensor& dy,
                const Tensor& dx) const;
  void queue(const Tensor& x, const Tensor& dy, std::span<const GradientTarget> gradients,
             std::vector<WeightProduct>& products) const;

  // The same in two halves, for products that are parts of a sum.
  void multiply(const Context& context, const Tensor& x, const Tensor& y,
                bool accumulate = false) const;
  void add_biases(const Context& context, const Tensor& y) const;
  void input_gradient(const Context& context, const Tensor& dy, const Tensor& dx) const;
  void bias_gradients(std::span<const GradientTarget> gradients, const Tensor& dy) const;

 private:
  void multiply_and_add(const Context& context, const Tensor& x, const Tensor& y,
                        bool accumulate) const;

  std::size_t weights_, biases_, size_;
  bool has_bias_;
  Stored stored_;
};

}  // namespace ptrain::layers
