#include "core/program/passes/passes.h"

namespace ptrain::program {

Draft add_tied_sum(Draft draft, const Pipeline& pipeline, int rank, const PassContext& context) {
  constexpr int kTied = 0;
  const int first = pipeline.rank_of(0), last = pipeline.rank_of(pipeline.num_stages() - 1);
  const bool is_end = rank == first || rank == last;
  if (!context.architecture.config.tie_word_embeddings || first == last || !is_end) return draft;
  if (pipeline.spreads_embedding) return draft;
  Action action;
  action.lane = Lane::kReduce;
  action.kind = Kind::kSyncTied;
  action.group = kTied;
  action.after.push_back(last_sums(draft, context.architecture)[kTied]);
  draft.add(std::move(action));
  return draft;
}

}  // namespace ptrain::program
