#include "engine/layers/linear.h"

#include <algorithm>

#include "core/program/block_sizes.h"
#include "engine/base/engine_error.h"
#include "engine/kernels/matmul.h"
#include "engine/kernels/rows.h"
#include "engine/layers/workspace.h"

namespace ptrain::layers {
namespace {

using program::kRoundedRows;

bool adjacent(const Tensor& first, const Tensor& second) {
  return first.cols == second.cols && first.stride == second.stride &&
         first.row_range(first.rows, 0).data == second.data;
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

void linear(const Tensor& x, std::span<const Tensor> weights, const Tensor& y,
            LinearOptions options) {
  std::int64_t begin = 0;
  if (options.stored == Stored::kInOut) {
    for (const Tensor& weight : weights) {
      kernels::matmul(x, weight, y.columns(begin, weight.cols), {.accumulate = options.accumulate});
      begin += weight.cols;
    }
    return;
  }
  for (const Tensor& weight : joined(weights)) {
    kernels::matmul(x, weight, y.columns(begin, weight.rows),
                    {.transpose_b = true, .accumulate = options.accumulate});
    begin += weight.rows;
  }
}

void linear_input_gradient(const Tensor& dy, std::span<const Tensor> weights, const Tensor& dx,
                           Stored stored) {
  std::int64_t begin = 0;
  if (stored == Stored::kInOut) {
    for (const Tensor& weight : weights) {
      kernels::matmul(dy.columns(begin, weight.cols), weight, dx,
                      {.transpose_b = true, .accumulate = begin > 0});
      begin += weight.cols;
    }
    return;
  }
  for (const Tensor& weight : joined(weights)) {
    kernels::matmul(dy.columns(begin, weight.rows), weight, dx, {.accumulate = begin > 0});
    begin += weight.rows;
  }
}

void queue_weight_gradient(const Tensor& x, const Tensor& dy,
                           std::span<const GradientTarget> targets,
                           std::vector<WeightProduct>& products, Stored stored) {
  std::int64_t begin = 0;
  if (stored == Stored::kInOut) {
    // x^T dy: the pair changes places.
    for (const GradientTarget& target : targets) {
      products.push_back({dy.columns(begin, target.tensor.cols), x, target});
      begin += target.tensor.cols;
    }
    return;
  }
  for (const GradientTarget& target : joined(targets)) {
    products.push_back({x, dy.columns(begin, target.tensor.rows), target});
    begin += target.tensor.rows;
  }
}

void backward_weight(std::span<const WeightProduct> products) {
  std::vector<kernels::Product> all;
  for (const auto& [x, dy, target] : products)
    all.push_back({dy, x, target.tensor, target.accumulate});
  kernels::grouped_matmul(all, {.transpose_a = true});
}

void multiply_in_blocks(
    const Context& context, const Tensor& y,
    const std::function<void(std::int64_t begin, const Tensor& block)>& multiply) {
  std::vector<Buffer> buffers;
  const Tensor sums = take_scratch(context.arena, wide_of(y.dtype), std::min(kRoundedRows, y.rows),
                                   y.cols, buffers);
  for (std::int64_t begin = 0; begin < y.rows; begin += kRoundedRows) {
    const Tensor block = sums.row_range(0, std::min(kRoundedRows, y.rows - begin));
    multiply(begin, block);
    copy_tensor(block, y.row_range(begin, block.rows));
  }
}

Linears::Linears(const Places& places, model::Role first, model::Role bias, std::size_t size)
    : weights_(places.parameter(first)),
      biases_(places.has(bias) ? places.parameter(bias) : 0),
      size_(size),
      has_bias_(places.has(bias)),
      stored_(places.is_transposed(first) ? Stored::kInOut : Stored::kOutIn) {}

void Linears::forward(const Context& context, const Tensor& x, const Tensor& y,
                      bool accumulate) const {
  if (y.dtype == wide_of(y.dtype)) return multiply_and_add(context, x, y, accumulate);
  PT_CHECK(!accumulate);
  multiply_in_blocks(context, y, [&](std::int64_t begin, const Tensor& block) {
    multiply_and_add(context, x.row_range(begin, block.rows), block, false);
  });
}

void Linears::multiply_and_add(const Context& context, const Tensor& x, const Tensor& y,
                               bool accumulate) const {
  multiply(context, x, y, accumulate);
  add_biases(context, y);
}

void Linears::multiply(const Context& context, const Tensor& x, const Tensor& y,
                       bool accumulate) const {
  linear(x, context.parameters.subspan(weights_, size_), y, {stored_, accumulate});
}

void Linears::add_biases(const Context& context, const Tensor& y) const {
  if (!has_bias_) return;
  std::int64_t begin = 0;
  for (const Tensor& bias : context.parameters.subspan(biases_, size_)) {
    kernels::add_row(bias, y.columns(begin, bias.cols));
    begin += bias.cols;
  }
}

void Linears::backward(const Context& context, std::span<const GradientTarget> gradients,
                       const Tensor& dy, const Tensor& dx) const {
  input_gradient(context, dy, dx);
  bias_gradients(gradients, dy);
}

void Linears::input_gradient(const Context& context, const Tensor& dy, const Tensor& dx) const {
  linear_input_gradient(dy, context.parameters.subspan(weights_, size_), dx, stored_);
}

void Linears::bias_gradients(std::span<const GradientTarget> gradients, const Tensor& dy) const {
  if (!has_bias_) return;
  std::int64_t begin = 0;
  for (const GradientTarget& bias : gradients.subspan(biases_, size_)) {
    begin_sum(bias);
    kernels::sum_rows(dy.columns(begin, bias.tensor.cols), bias.tensor);
    begin += bias.tensor.cols;
  }
}

void Linears::queue(const Tensor& x, const Tensor& dy, std::span<const GradientTarget> gradients,
                    std::vector<WeightProduct>& products) const {
  queue_weight_gradient(x, dy, gradients.subspan(weights_, size_), products, stored_);
}

}  // namespace ptrain::layers
