#include "core/program/passes/passes.h"

namespace ptrain::program {
namespace {

Action layer_action(Kind kind, const Cell& cell, int layer) {
  Action action;
  action.kind = kind;
  action.stage = cell.stage;
  action.layer_first = action.layer_last = layer;
  action.micro_batch = cell.micro_batch;
  return action;
}

}  // namespace

Draft lay_segments(std::span<const Cell> cells, bool train, const PassContext& context) {
  const int num_layers = static_cast<int>(context.architecture.layers.size());
  Draft draft;
  draft.actions().reserve(cells.size() * static_cast<std::size_t>(num_layers));
  for (const Cell& cell : cells) {
    for (int i = 0; i < num_layers; ++i) {
      if (cell.work == Work::kForward) {
        Action forward = layer_action(Kind::kForward, cell, i);
        forward.attributes.emplace_back("keep", train ? "all" : "none");
        draft.add(std::move(forward));
      } else {
        draft.add(layer_action(Kind::kBackward, cell, num_layers - 1 - i));
      }
    }
  }
  return draft;
}

}  // namespace ptrain::program
