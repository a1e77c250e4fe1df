#pragma once

#include <optional>
#include <string>

#include "engine/layers/linear.h"
#include "engine/layers/norm.h"
#include "engine/layers/tensor_share.h"
#include "engine/layers/workspace.h"

namespace ptrain::layers {

// How a part of a block returns to the residual stream: y = x + linear(inner), or x +
// norm(linear(inner)). inner has the rows of all tokens and this rank's columns, all else the rows
// of the stream, unless it is called whole.
class ResidualPart {
 public:
  struct Roles {
    model::Role weight, bias, norm, norm_bias;
  };
  // stash: the name of what is kept before the norm, where there is one.
  ResidualPart(const model::Architecture& architecture, const model::LayerSpec& spec, Roles roles,
               const std::string& stash);

  bool has_norm() const { return norm_.has_value(); }

  // Both empty without a norm.
  struct Kept {
    Tensor projected, statistics;
  };
  Kept kept(Workspace& work) const;

  // y is other memory than x.
  Task forward(const Context& context, const Tensor& x, const Tensor& inner, const Kept& kept,
               const Tensor& y) const;
  // y again, where there is a norm, from what forward kept before it.
  void remake(const Context& context, const Tensor& x, const Kept& kept, const Tensor& y) const;
  // The linear's output gradient, from dy through the norm, where there is one; in the stream.
  void through_norm(const Context& context, std::span<const GradientTarget> gradients,
                    const Kept& kept, const Tensor& dy, const Tensor& dprojected) const;
  // dinner, from that gradient, whole.
  void backward(const Context& context, std::span<const GradientTarget> gradients,
                const Tensor& dprojected, const Tensor& dinner) const;
  // dprojected: whole.
  void queue(const Tensor& inner, const Tensor& dprojected,
             std::span<const GradientTarget> gradients, std::vector<WeightProduct>& products) const;

 private:
  // The linear's outputs, added up over the ranks of the tensor axis, in the stream.
  Task project(const Context& context, const Tensor& inner, const Tensor& projected) const;

  std::int64_t hidden_;
  TensorShare share_;
  Linears linear_;
  std::optional<Norm> norm_;
  std::size_t projected_ = 0, statistics_ = 0;  // in the stash
};

}  // namespace ptrain::layers
