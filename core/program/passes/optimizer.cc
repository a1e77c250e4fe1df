#include "core/program/passes/passes.h"

namespace ptrain::program {
namespace {

// The sums that nothing waits for yet, and the last backward.
std::vector<int> unfinished(const Draft& draft, const model::Architecture& architecture) {
  std::vector<bool> waited(static_cast<std::size_t>(draft.num_ids()));
  int last_backward = -1;
  for (const Action& action : draft.actions()) {
    for (int id : action.after) waited[static_cast<std::size_t>(id)] = true;
    if (!groups_written(action, architecture).empty()) last_backward = action.id;
  }
  std::vector<int> ids;
  if (last_backward >= 0) ids.push_back(last_backward);
  for (const Action& action : draft.actions()) {
    const bool sums = action.kind == Kind::kReduceGrad || action.kind == Kind::kSyncTied ||
                      action.kind == Kind::kExchange;
    if (sums && !waited[static_cast<std::size_t>(action.id)]) ids.push_back(action.id);
  }
  return ids;
}

}  // namespace

Draft add_optimizer(Draft draft, const PassContext& context) {
  Action norm;
  norm.lane = Lane::kReduce;
  norm.kind = Kind::kGradNorm;
  norm.after = unfinished(draft, context.architecture);
  const std::vector<bool> held = groups_held(draft.actions(), context.architecture);
  const int norm_id = draft.add(std::move(norm));
  for (int group = 0; group < context.architecture.num_groups(); ++group) {
    if (!held[static_cast<std::size_t>(group)]) continue;
    Action update;
    update.kind = Kind::kOptimizer;
    update.group = group;
    update.after.push_back(norm_id);
    draft.add(std::move(update));
  }
  return draft;
}

}  // namespace ptrain::program
