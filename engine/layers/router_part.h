#pragma once

#include <cstdint>
#include <vector>

#include "engine/kernels/router.h"
#include "engine/layers/layer.h"
#include "engine/layers/places.h"
#include "engine/layers/router_rows.h"
#include "engine/layers/workspace.h"

namespace ptrain::layers {

// A layer's router: which experts a token passes, and how much each counts. It works in the wide
// dtype, on a rank's own tokens of the stream. Its auxiliary losses are those of every row by
// itself, so that no layout changes them, and enter multiplied by the row's targets, as all losses
// are sums over targets. So is the room of experts, in the order of a row's tokens: ranks that
// share rows gather all choices (row_share.h).
class RouterPart {
 public:
  RouterPart(const model::Architecture& architecture, const model::LayerSpec& spec);

  // logits [T, experts]; chosen [T, top_k], int32; weights [T, top_k].
  struct Kept {
    Tensor logits, chosen, weights;
  };
  Kept kept(Workspace& work) const;

  // Logits from normed [T, H] and weights, by a choice that is made here: choose().
  Task choose(const Context& context, const Tensor& normed, const Kept& kept) const;
  // The same, by the choice that was made before.
  void follow(const Context& context, const Tensor& normed, const Kept& kept) const;
  void remake(const Kept& kept) const;

  // logits become their gradient; dnormed is added to; the gradients of the matrix and the bias are
  // made. The bias's is no gradient of a loss: how far the load of its expert is above the mean of
  // all, times num_experts. What the router did is added to sums.
  struct Gradient {
    Tensor dweights, normed;  // of the weights; as in forward
    RouterSums& sums;
  };
  Task backward(const Context& context, std::span<const GradientTarget> gradients, const Kept& kept,
                const Gradient& in, const Tensor& dnormed) const;

 private:
  // Of the rows of a micro-batch, those of other ranks among them: by [row * num_experts + expert].
  struct Choices {
    RouterRows rows;
    std::vector<std::int64_t> counts;  // of all tokens of a row
    std::vector<std::int64_t> own;     // of this rank's
  };
  void make_logits(const Context& context, const Tensor& normed, const Tensor& logits) const;
  Task drop_beyond_capacity(const Context& context, const Tensor& chosen) const;
  void drop(const RouterRows& rows, const Tensor& chosen) const;
  Task count(const Context& context, const Tensor& chosen, Choices& choices) const;
  void router_gradient(const Context& context, const Kept& kept, const Choices& choices,
                       const Tensor& dweights) const;
  double balance_factor(const RouterRows& rows, std::int64_t row) const;
  void bias_gradient(const Choices& choices, const GradientTarget& target) const;
  void add_sums(const Context& context, const Kept& kept, const Choices& choices,
                RouterSums& sums) const;
  Tensor wide(const Tensor& tensor, Arena& arena, std::vector<Buffer>& buffers) const;

  // Layers with experts, and this one's place among them.
  std::int64_t num_layers_ = 0, place_ = 0;
  const model::MoeSpec moe_;
  kernels::RouterShape shape_;
  DType dtype_;
  RowShare share_;
  std::size_t matrix_, bias_ = 0;
  struct {
    std::size_t logits, chosen, weights;
  } stash_;
};

}  // namespace ptrain::layers
