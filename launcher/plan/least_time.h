#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "core/mesh/stages.h"
#include "launcher/plan/cut_sample.h"
#include "launcher/plan/search.h"

namespace ptrain::plan {

// What a step takes at least: no simulated step of a layout is shorter, and this takes
// microseconds. Counted is what each lane of a rank does in all, at the costs that the simulator
// takes, and in a pipeline what a rank waits for before its first forward and what follows its last
// backward. Left out is what depends on the order of actions.
class LeastTime {
 public:
  // Both must outlive it.
  LeastTime(const SearchInput& input, const CutSample& cut);

  // Of a layout that has the degrees of the cut.
  double of(const mesh::Layout& layout);
  // Of all layouts like it that have micro-batches of `rows` or more: as if one micro-batch were
  // the whole step, but filled and emptied the pipeline as the smallest does.
  double of_all_from(const mesh::Layout& layout, std::int64_t rows);

 private:
  // Seconds on the lane that computes, exchanges in between included, and of shifts beside it.
  struct Pass {
    double compute_s = 0, shift_s = 0;
    void operator+=(const Pass& more) { compute_s += more.compute_s, shift_s += more.shift_s; }
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
  // Of a step, but for what is said of one micro-batch.
  struct Stage {
    int rank = 0;
    double fill_s = 0, drain_s = 0;  // forward and backward of the smallest micro-batch
    Pass forward, backward;          // of one micro-batch
    double gather_s = 0, largest_gather_s = 0, optimizer_s = 0;
    double reduce_each_s = 0, reduce_last_s = 0;
  };
  struct Rank;
  // By layer of the sample.
  struct Layers {
    const mesh::Layout& layout;
    const std::vector<Work>& works;
    const std::vector<Work>& fills;  // of the smallest micro-batch
    const std::vector<Upkeep>& upkeep;
  };

  CostContext context_of(const mesh::Layout& layout) const;
  Pass pass_of(program::Action action, int layer, const CostContext& context) const;
  Work work_of(int layer, const CostContext& context) const;
  const std::vector<Work>& works_of(mesh::Layout layout, std::int64_t rows);
  std::vector<Upkeep> upkeep_of(const CostContext& context) const;
  void add_layer(Stage& stage, const Work& work, const Upkeep& upkeep,
                 recipe::Recompute recompute) const;
  Stage stage_of(const mesh::StageLayers& layers, recipe::Recompute recompute,
                 const Layers& of) const;
  Result<std::vector<Stage>> stages_of(const mesh::Layout& layout, std::int64_t fill_rows);
  void add_stage(const Stage& stage, const mesh::Layout& layout, Rank& rank) const;
  std::vector<Rank> ranks_of(const std::vector<Stage>& stages, const mesh::Layout& layout,
                             double send_s) const;
  double busy_s(const mesh::Layout& layout, const Rank& rank) const;

  const SearchInput& input_;
  const CutSample& cut_;
  std::map<std::int64_t, std::vector<Work>> works_;  // by layer, by rows of a micro-batch
};

}  // namespace ptrain::plan
