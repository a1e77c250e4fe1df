#pragma once

#include <span>

#include "engine/layers/layer.h"
#include "engine/layers/places.h"

namespace ptrain::layers {

// A norm of a decoder's kind, with the parameters that have these roles in its layer.
class Norm {
 public:
  Norm(const model::Decoder& decoder, const Places& places, model::Role weight, model::Role bias);

  // Numbers that forward keeps of every row, beside its input.
  std::int64_t statistics_cols() const;
  void forward(const Context& context, const Tensor& x, const Tensor& y,
               const Tensor& statistics) const;

  struct Gradient {
    Tensor x, statistics;  // as in forward
    Tensor dy;
    Tensor residual;  // added to dx; empty: nothing is
  };
  // dx may be dy or residual. The gradients of weight and bias are made.
  void backward(const Context& context, std::span<const GradientTarget> gradients,
                const Gradient& in, const Tensor& dx) const;

 private:
  model::NormKind kind_;
  double eps_;
  std::size_t weight_;
  std::size_t bias_ = 0;  // of kLayerNorm
};

// y = x * weight of every head, without a bias; for queries and keys.
class HeadNorm {
 public:
  HeadNorm(const model::Decoder& decoder, std::size_t weight);
  // Without an offset.
  HeadNorm(double eps, std::size_t weight) : offset_(0), eps_(eps), weight_(weight) {}

  // x and y: [T, heads x head_dim], scale: [T, heads].
  void forward(const Context& context, const Tensor& x, const Tensor& y, const Tensor& scale) const;
  // dy becomes dx.
  void backward(const Context& context, std::span<const GradientTarget> gradients, const Tensor& x,
                const Tensor& scale, const Tensor& dy) const;

 private:
  double offset_;
  double eps_;
  std::size_t weight_;
};

}  // namespace ptrain::layers
