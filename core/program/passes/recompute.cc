#include <algorithm>

#include "core/program/keep.h"
#include "core/program/passes/passes.h"

namespace ptrain::program {
namespace {

bool is_block(const Action& action, const model::Architecture& architecture) {
  const int layer = layer_of(action);
  return layer >= 0 &&
         architecture.layers[static_cast<std::size_t>(layer)].kind == model::LayerKind::kBlock;
}

void keep_only(Keep keep, Action& forward) {
  for (auto& [key, value] : forward.attributes) {
    if (key == "keep" && value == to_string(Keep::kAll)) value = to_string(keep);
  }
}

Action remake_before(const Action& backward, Keep from) {
  Action action = backward;
  action.kind = Kind::kRecompute;
  action.attributes = {{"from", std::string(to_string(from))}};
  return action;
}

}  // namespace

Draft add_recompute(Draft draft, const PassContext& context) {
  Draft out = draft.successor();
  for (Action& action : draft.actions()) {
    const Keep keep = keep_of(context.layout.recompute_of(std::max(action.stage, 0)));
    const bool block = keep != Keep::kAll && is_block(action, context.architecture);
    if (block && action.kind == Kind::kForward) keep_only(keep, action);
    const bool goes_back = action.kind == Kind::kBackward || action.kind == Kind::kBackwardInput;
    if (block && goes_back) out.add(remake_before(action, keep));
    out.keep(std::move(action));
  }
  return out;
}

}  // namespace ptrain::program
