#include "core/program/passes/passes.h"

namespace ptrain::program {
namespace {

using schedule::Cell;
using schedule::Work;

Kind kind_of(Work work, bool train) {
  switch (work) {
    case Work::kForward:
      return Kind::kForward;
    case Work::kBackward:
      return Kind::kBackward;
    case Work::kBackwardInput:
      return Kind::kBackwardInput;
    case Work::kBackwardWeight:
      return Kind::kBackwardWeight;
    case Work::kShared:
      break;
  }
  return train ? Kind::kBackward : Kind::kForward;
}

Action layer_action(Kind kind, const Cell& cell, int layer, bool train) {
  Action action;
  action.kind = kind;
  action.stage = cell.stage;
  action.layer_first = action.layer_last = layer;
  action.micro_batch = cell.micro_batch;
  if (kind == Kind::kForward) action.attributes.emplace_back("keep", train ? "all" : "none");
  return action;
}

// The look-up needs tokens and no stream, so no rank waits for another's cells.
void lay_embedding(Draft& draft, Kind kind, int num_micro_batches, bool train) {
  for (int m = 0; m < num_micro_batches; ++m)
    draft.add(layer_action(kind, {.stage = 0, .micro_batch = m}, 0, train));
}

}  // namespace

Draft lay_segments(std::span<const Cell> cells, const Pipeline& pipeline, bool train,
                   const PassContext& context) {
  const std::size_t num_layers = context.architecture.layers.size();
  Draft draft;
  draft.actions().reserve(cells.size() * (num_layers / pipeline.stages.size() + 1));
  const int num_micro_batches = pipeline.schedule.num_micro_batches;
  if (pipeline.spreads_embedding) lay_embedding(draft, Kind::kForward, num_micro_batches, train);
  for (const Cell& cell : cells) {
    auto [begin, end] = pipeline.layers_of(cell.stage);
    if (cell.work == Work::kShared) begin = end - 1;
    const Kind kind = kind_of(cell.work, train);
    for (int i = begin; i < end; ++i) {
      const int layer = kind == Kind::kForward ? i : begin + end - 1 - i;
      const auto& spec = context.architecture.layers[static_cast<std::size_t>(layer)];
      if (kind == Kind::kBackwardWeight && spec.kind != model::LayerKind::kBlock) continue;
      draft.add(layer_action(kind, cell, layer, train));
    }
  }
  if (pipeline.spreads_embedding && train)
    lay_embedding(draft, Kind::kBackward, num_micro_batches, train);
  return draft;
}

}  // namespace ptrain::program
