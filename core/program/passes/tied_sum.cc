#include "core/program/passes/passes.h"

namespace ptrain::program {
namespace {

// The sum of the group that comes last; without any its last backward. -1: none.
int last_sum(const Draft& draft, int group, const model::Architecture& architecture) {
  int write = -1, reduction = -1;
  for (const Action& action : draft.actions()) {
    if (writes(action, group, architecture)) write = action.id;
    const bool sums = action.kind == Kind::kReduceGrad || action.kind == Kind::kExchange;
    if (sums && action.group == group) reduction = action.id;
  }
  return reduction >= 0 ? reduction : write;
}

}  // namespace

Draft add_tied_sum(Draft draft, const Pipeline& pipeline, int rank, const PassContext& context) {
  constexpr int kTied = 0;
  const int first = pipeline.rank_of(0), last = pipeline.rank_of(pipeline.num_stages() - 1);
  const bool is_end = rank == first || rank == last;
  if (!context.architecture.config.tie_word_embeddings || first == last || !is_end) return draft;
  Action action;
  action.lane = Lane::kReduce;
  action.kind = Kind::kSyncTied;
  action.group = kTied;
  action.after.push_back(last_sum(draft, kTied, context.architecture));
  draft.add(std::move(action));
  return draft;
}

}  // namespace ptrain::program
