#pragma once

#include <vector>

#include "core/model/architecture.h"
#include "engine/execute/lane_queue.h"
#include "engine/execute/sharing.h"
#include "engine/state/group_buffer.h"

namespace ptrain::execute {

// Adds up gradients of parameters that several ranks of a model hold, each with a part of the
// gradient: after all other reductions of a step, on the shards that these leave, which are alike
// on those ranks. Sums are made in rank order, so that the copies of a parameter stay equal to the
// bit. Collective over the ranks that hold them.
class GradientSums {
 public:
  GradientSums(const model::Architecture& part, const Communicators& communicators,
               Sharing& sharing);

  // SYNC_TIED: of the group that a tied head and the embedding share, along the pipeline.
  std::vector<LaneQueue::Stage> over_pipeline(state::GroupBuffer& group) const;
  // EXCHANGE kind=sum_gradients axis=tp: of parameters whose gradients tensor ranks have parts of
  // (ParameterSpec::sum_ranks).
  std::vector<LaneQueue::Stage> over_tensor_ranks(state::GroupBuffer& group) const;

 private:
  LaneQueue::Stage begin(state::GroupBuffer& group) const;
  comm::Communicator* holders_of(const mesh::ShardRun& run) const;

  const model::Architecture& part_;
  Communicators communicators_;
  Sharing& sharing_;
};

}  // namespace ptrain::execute
