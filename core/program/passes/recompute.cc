#include "core/program/passes/passes.h"

namespace ptrain::program {
namespace {

bool is_block(const Action& action, const model::Architecture& architecture) {
  const int layer = layer_of(action);
  return layer >= 0 &&
         architecture.layers[static_cast<std::size_t>(layer)].kind == model::LayerKind::kBlock;
}

void keep_input_only(Action& forward) {
  for (auto& [key, value] : forward.attributes) {
    if (key == "keep" && value == "all") value = "input";
  }
}

Action repeat_of(const Action& backward) {
  Action action = backward;
  action.kind = Kind::kRecompute;
  action.attributes.clear();
  return action;
}

}  // namespace

Draft add_recompute(Draft draft, const PassContext& context) {
  if (context.layout.recompute == recipe::Recompute::kNone) return draft;
  Draft out = draft.successor();
  for (Action& action : draft.actions()) {
    const bool block = is_block(action, context.architecture);
    if (block && action.kind == Kind::kForward) keep_input_only(action);
    if (block && action.kind == Kind::kBackward) out.add(repeat_of(action));
    out.keep(std::move(action));
  }
  return out;
}

}  // namespace ptrain::program
