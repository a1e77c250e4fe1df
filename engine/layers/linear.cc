#include "engine/layers/linear.h"

#include "engine/kernels/matmul.h"

namespace ptrain::layers {
namespace {

bool adjacent(const Tensor& first, const Tensor& second) {
  return first.cols == second.cols && first.stride == second.stride &&
         first.row_range(first.rows, 0).data == second.data;
}

std::vector<Tensor> joined(std::span<const Tensor> weights) {
  std::vector<Tensor> result;
  for (const Tensor& weight : weights) {
    if (!result.empty() && adjacent(result.back(), weight)) {
      result.back().rows += weight.rows;
    } else {
      result.push_back(weight);
    }
  }
  return result;
}

std::vector<GradientTarget> joined(std::span<const GradientTarget> targets) {
  std::vector<GradientTarget> result;
  for (const GradientTarget& target : targets) {
    if (!result.empty() && result.back().accumulate == target.accumulate &&
        adjacent(result.back().tensor, target.tensor)) {
      result.back().tensor.rows += target.tensor.rows;
    } else {
      result.push_back(target);
    }
  }
  return result;
}

}  // namespace

void linear(const Tensor& x, std::span<const Tensor> weights, const Tensor& y) {
  std::int64_t begin = 0;
  for (const Tensor& weight : joined(weights)) {
    kernels::matmul(x, weight, y.columns(begin, weight.rows), {.transpose_b = true});
    begin += weight.rows;
  }
}

void linear_input_gradient(const Tensor& dy, std::span<const Tensor> weights, const Tensor& dx) {
  std::int64_t begin = 0;
  for (const Tensor& weight : joined(weights)) {
    kernels::matmul(dy.columns(begin, weight.rows), weight, dx, {.accumulate = begin > 0});
    begin += weight.rows;
  }
}

void queue_weight_gradient(const Tensor& x, const Tensor& dy,
                           std::span<const GradientTarget> targets,
                           std::vector<WeightProduct>& products) {
  std::int64_t begin = 0;
  for (const GradientTarget& target : joined(targets)) {
    products.push_back({x, dy.columns(begin, target.tensor.rows), target});
    begin += target.tensor.rows;
  }
}

void backward_weight(std::span<const WeightProduct> products) {
  for (const WeightProduct& product : products)
    kernels::matmul(product.dy, product.x, product.target.tensor,
                    {.transpose_a = true, .accumulate = product.target.accumulate});
}

}  // namespace ptrain::layers
