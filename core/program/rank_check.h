#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/mesh/group_mesh.h"
#include "core/model/architecture.h"
#include "core/program/action.h"
#include "core/program/keep.h"
#include "core/program/pipeline_check.h"
#include "core/program/ring_check.h"
#include "core/program/segment_check.h"

namespace ptrain::program {

// What a rank's own program must keep to, whatever the others do. Feed it every action in order,
// then call end(). Each returns what is broken, or nothing.
class RankCheck {
 public:
  using Broken = std::optional<std::string>;

  // The pipeline of the layout; all must outlive this.
  RankCheck(const Program& program, const model::Architecture& architecture,
            const mesh::Layout& layout, const Pipeline& pipeline);
  Broken run(const Action& action);
  Broken end() const;

 private:
  // Positions, counted from 1 in each lane, up to which a lane is known to be finished.
  using Clock = RingCheck::Clock;

  struct Group {
    bool open = false;        // whole parameters are there, or on their way
    int unshard = 0;          // position of the last UNSHARD in its lane
    int last_use = 0;         // position in the compute lane
    std::vector<int> writes;  // by micro-batch: whole backwards of layers that read it
    int last_write = 0;       // position in the compute lane
    int num_reductions = 0;
    int unfinished = -1;  // id of a sum that nobody waited for
    int synced = 0;       // SYNC_TIED
    int summed = 0;       // over the tensor axis
    bool updated = false;
    int readers = 0;  // layers of the rank that read it
    int shards = 1, replicas = 1;
    bool each_micro_batch = false;  // it is reduced then; else once a step
    bool is_held() const { return readers > 0; }
    bool alone() const { return shards * replicas == 1; }
  };

  Broken well_formed(const Action& action) const;
  Broken advance(const Action& action);
  Broken dispatch(const Action& action);
  Broken use(const Action& action);
  Broken forward(const Action& action);
  Broken share(const Action& action);
  Broken recompute(const Action& action);
  Broken backward(const Action& action);
  Broken weight(const Action& action);
  Broken write(const Action& action);
  Broken unshard(const Action& action);
  Broken reshard(const Action& action);
  Broken reduce(const Action& action);
  Broken over_replicas(const Action& action, const Group& reduced) const;
  Broken complete(const Action& action, const Group& reduced) const;
  Broken sync_tied(const Action& action);
  Broken sum_over_tensor_ranks(const Action& action);
  Broken norm() const;
  Broken ready(int index) const;
  Broken optimizer(const Action& action);

  int num_layers() const { return static_cast<int>(architecture_.layers.size()); }
  const model::LayerSpec& spec_of(const Action& action) const;
  Group& group(int index) { return groups_[static_cast<std::size_t>(index)]; }
  // Whole backwards of a micro-batch that have written it; -1: of all micro-batches.
  static int num_writes(const Group& group, int micro_batch);
  int required_writes(const Group& group, int micro_batch) const;
  bool needs_sync(int index) const;
  int num_reductions(const Group& group) const {  // in a step
    return group.each_micro_batch ? static_cast<int>(layout_.num_micro_batches) : 1;
  }
  int now(Lane lane) const { return now_[static_cast<std::size_t>(lane)]; }

  const model::Architecture& architecture_;
  const mesh::Layout& layout_;
  const Pipeline& pipeline_;
  int stage_rank_;  // of the pipeline
  PipelineCheck passages_;
  RingCheck ring_;
  SegmentCheck segments_;
  std::vector<Group> groups_;
  std::vector<bool> needs_sum_;                  // by group: over the tensor axis
  std::map<std::pair<int, int>, Keep> stashes_;  // by (layer, micro-batch), those alive
  std::vector<Clock> clocks_;                    // by action
  std::array<int, 6> last_in_lane_;              // id of each lane's newest action, or -1
  Clock now_{};                                  // of the action that runs
  bool trains_ = false;
  int norm_position_ = 0;  // of GRAD_NORM in its lane; 0: not yet
};

}  // namespace ptrain::program
