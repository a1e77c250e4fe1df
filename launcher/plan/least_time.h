#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "launcher/plan/cuts.h"
#include "launcher/plan/pipelines.h"
#include "launcher/plan/search.h"

namespace ptrain::plan {

// What a step takes at least: no simulated step of a layout is shorter, and this takes
// microseconds. Counted is what each lane of a rank does in all, at the costs that the simulator
// takes, and in a pipeline what a rank waits for before its first forward and what follows its last
// backward. Left out is what depends on the order of actions.
class LeastTime {
 public:
  // All must outlive it.
  LeastTime(const SearchInput& input, Cuts& cuts, Pipelines& pipelines);

  // 0 where it is not known.
  double of(const mesh::Layout& layout);
  // Of all layouts like it that have micro-batches of `rows` or more: as if one micro-batch were
  // the whole step, but filled and emptied the pipeline as the smallest does.
  double of_all_from(const mesh::Layout& layout, std::int64_t rows);
  // About how many actions the programs of a pipeline's ranks have together: what compiling them
  // will take.
  double num_actions(const mesh::Layout& layout);

 private:
  // Seconds on the lane that computes, exchanges in between included, and of shifts beside it.
  struct Pass {
    double compute_s = 0, shift_s = 0;
    double num_actions = 0;
    void add(const Pass& more, double times) {
      compute_s += times * more.compute_s;
      shift_s += times * more.shift_s;
      num_actions += times * more.num_actions;
    }
  };
  // Of one layer and one micro-batch.
  struct Work {
    Pass forward, backward;
    std::array<Pass, 3> again;  // by Recompute
  };
  // Of one layer's parameters.
  struct Upkeep {
    double gather_s = 0, optimizer_s = 0;
    double reduce_each_s = 0, reduce_last_s = 0;  // after a micro-batch but the last, and after it
    bool is_block = false;
  };
  // By layer of the sample.
  struct State {
    std::vector<Upkeep> layers;
    double norm_s = 0;
  };
  // Of a step, but for what is said of one micro-batch.
  struct Stage {
    double fill_s = 0, drain_s = 0;  // forward and backward of the smallest micro-batch
    Pass forward, backward;          // of one micro-batch
    double gather_s = 0, largest_gather_s = 0, optimizer_s = 0;
    double reduce_each_s = 0, reduce_last_s = 0;
  };
  struct Rank;
  struct Layers {
    const mesh::Layout& layout;
    const std::vector<Work>& works;
    const std::vector<Work>& fills;  // of the smallest micro-batch
    const std::vector<Upkeep>& upkeep;
  };
  using WorkKey = std::array<std::int64_t, 6>;
  using StateKey = std::array<int, 7>;

  CostContext context_of(const mesh::Layout& layout, const model::Architecture& part,
                         std::span<const mesh::BufferPlan> buffers) const;
  Pass pass_of(program::Action action, int layer, const CostContext& context) const;
  Work work_of(int layer, const CostContext& context) const;
  Upkeep upkeep_of(int layer, const CostContext& context) const;
  Result<const std::vector<Work>*> works_of(mesh::Layout layout, std::int64_t rows);
  Result<const State*> state_of(const mesh::Layout& layout);
  Stage stage_of(const StageKinds& kinds, recipe::Recompute recompute, const Layers& of) const;
  void add_stage(const Stage& stage, const mesh::Layout& layout, Rank& rank) const;
  std::vector<Rank> ranks_of(const std::vector<StageKinds>& stages, const Layers& of,
                             double send_s) const;
  double busy_s(const mesh::Layout& layout, const Rank& rank) const;

  const SearchInput& input_;
  Cuts& cuts_;
  Pipelines& pipelines_;
  std::map<WorkKey, std::vector<Work>> works_;  // by tp, cp, ulysses, ep, etp, rows
  // By tp, ep, etp, shards, dp, window, zero above 1: by layer of the sample.
  std::map<StateKey, State> states_;
};

}  // namespace ptrain::plan
