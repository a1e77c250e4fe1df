#pragma once

#include <memory>
#include <vector>

#include "core/mesh/layout.h"
#include "core/model/architecture.h"
#include "engine/base/arena.h"
#include "engine/comm/communicator.h"
#include "engine/execute/lane_queue.h"
#include "engine/state/group_buffer.h"

namespace ptrain::execute {

// The groups a rank communicates in, one communicator a lane (groups.h makes them). Null where the
// axis has one rank. With a shared window parameters are neither gathered nor reduced by these.
struct Communicators {
  comm::Communicator& world;
  comm::Communicator* shard_gather = nullptr;  // over shard x cp
  comm::Communicator* shard_reduce = nullptr;
  comm::Communicator* dp_reduce = nullptr;
  comm::Communicator* tensor = nullptr;          // for the exchanges between a layer's segments
  comm::Communicator* tensor_sums = nullptr;     // for gradients of what all tensor ranks hold
  comm::Communicator* key_value_sums = nullptr;  // of neighbours that hold the same keys and values
  comm::Communicator* pipeline_forward = nullptr;
  comm::Communicator* pipeline_backward = nullptr;
  comm::Communicator* tied = nullptr;  // the two stages that hold a tied matrix whole
  comm::Communicator* ring = nullptr;
  comm::Communicator* ulysses = nullptr;
  comm::Communicator* vocabulary = nullptr;     // pp x tp: ranks that share what is spread
  comm::Communicator* rows = nullptr;           // tp x cp: ranks that hold tokens of the same rows
  comm::Communicator* experts = nullptr;        // ranks that share the experts of a layer: ep x etp
  comm::Communicator* expert_gather = nullptr;  // over the shards of experts
  comm::Communicator* expert_reduce = nullptr;
  comm::Communicator* expert_replicas = nullptr;
};

// How a rank's parameters and gradients meet those of its peers. Every rank of the world calls the
// same functions in the same order; none but begin_write and close blocks.
class Sharing {
 public:
  virtual ~Sharing() = default;
  // Where a group lies in memory that the peers see, and its other properties.
  virtual state::GroupBuffer::Place place_of(int group) const = 0;
  // From here on the peers may read this rank's parameters, which no longer change before the
  // program's OPTIMIZER.
  virtual void begin_program() = 0;
  // Whole parameters in open_whole().
  virtual std::vector<LaneQueue::Stage> gather(state::GroupBuffer& group) = 0;
  // The sum over the shard axis in reduced_shard(), added in rank order. `over_replicas`: then what
  // earlier reductions of the step left is added, and the sum over the replicas made.
  virtual std::vector<LaneQueue::Stage> reduce(state::GroupBuffer& group, bool over_replicas) = 0;
  // Until the peers have read what the group's gradients are about to replace.
  virtual void begin_write(int group) = 0;
  virtual void close() = 0;  // collective; parameters in a window are gone then
};

// What both kinds need to know.
struct SharingInput {
  const model::Architecture& architecture;
  const mesh::Layout& layout;
  const Communicators& communicators;
  Arena& arena;
};

// By all-gathers and reduce-scatters of the communicators.
std::unique_ptr<Sharing> share_by_messages(const SharingInput& input);
// In one window of the world: parameters are read where their owner keeps them, gradients are added
// where the peers wrote them. Collective. EngineError when the ranks are not on one node.
std::unique_ptr<Sharing> share_by_window(const SharingInput& input);
// The one that the layout names.
std::unique_ptr<Sharing> make_sharing(const SharingInput& input);

}  // namespace ptrain::execute
