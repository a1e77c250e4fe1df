#include "engine/execute/action_points.h"

#include "engine/base/engine_error.h"

namespace ptrain::execute {
namespace {

using model::LayerKind;
using program::Kind;

ActionPoints forward(LayerKind kind) {
  if (kind == LayerKind::kEmbedding)
    return {"train.forward.embedding.begin", "train.forward.embedding.end"};
  if (kind == LayerKind::kHead) return {"train.forward.head.begin", "train.forward.head.end"};
  return {"train.forward.block.begin", "train.forward.block.end"};
}

ActionPoints backward(LayerKind kind) {
  if (kind == LayerKind::kEmbedding)
    return {"train.backward.embedding.begin", "train.backward.embedding.end"};
  if (kind == LayerKind::kHead) return {"train.backward.head.begin", "train.backward.head.end"};
  return {"train.backward.block.begin", "train.backward.block.end"};
}

}  // namespace

std::optional<ActionPoints> points_of(const program::Action& action,
                                      const model::Architecture& architecture) {
  const auto layer = [&] {
    return architecture.layers[static_cast<std::size_t>(action.layer_first)].kind;
  };
  switch (action.kind) {
    case Kind::kForward:
      return forward(layer());
    case Kind::kBackward:
    case Kind::kBackwardInput:
    case Kind::kBackwardWeight:
      return backward(layer());
    case Kind::kRecompute:
      return ActionPoints{"train.recompute.block.begin", "train.recompute.block.end"};
    case Kind::kUnshard:
      return ActionPoints{"train.unshard.begin", "train.unshard.end"};
    case Kind::kReshard:
      return ActionPoints{"train.reshard.begin", "train.reshard.end"};
    case Kind::kReduceGrad:
      return ActionPoints{"train.reduce_grad.begin", "train.reduce_grad.end"};
    case Kind::kGradNorm:
      return ActionPoints{"train.grad_norm.begin", "train.grad_norm.end"};
    case Kind::kFetch:
      return ActionPoints{"train.fetch.begin", "train.fetch.end"};
    case Kind::kOffload:
      return ActionPoints{"train.offload.begin", "train.offload.end"};
    case Kind::kOptimizer:
      return ActionPoints{"train.optimizer.begin", "train.optimizer.end"};
    default:
      return std::nullopt;
  }
}

}  // namespace ptrain::execute
