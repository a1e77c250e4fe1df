#pragma once

#include <vector>

#include "core/base/result.h"
#include "core/mesh/layout.h"
#include "core/mesh/stages.h"
#include "core/schedule/schedule.h"

namespace ptrain::program {

// How the work of a step is dealt out to the ranks of a pipeline.
struct Pipeline {
  schedule::Schedule schedule;            // without pairs: their halves follow each other
  std::vector<mesh::StageLayers> stages;  // by stage; without an embedding that is spread
  std::vector<int> ranks;                 // by stage: its pipeline rank
  // All ranks look up tokens before the cells of the step, and add to the matrix behind them.
  bool spreads_embedding = false;
  bool spreads_head = false;  // all other ranks do S for each backward of the last stage

  int last_stage() const { return num_stages() - 1; }
  int num_stages() const { return static_cast<int>(stages.size()); }
  // -1 before the first stage and behind the last one.
  int rank_of(int stage) const {
    return stage < 0 || stage >= num_stages() ? -1 : ranks[static_cast<std::size_t>(stage)];
  }
  const mesh::StageLayers& layers_of(int stage) const {
    return stages[static_cast<std::size_t>(stage)];
  }
};

// The layout's schedule, by name or as its file says, with S where the head is spread
// (schedule/shared_work.h); with one stage F0 B0 F1 B1 .... `train`
// false: every stage's F in model order, micro-batch after micro-batch. Errors (kUsage): a schedule
// that does not suit the layout, with the nearest that does, or that the engine cannot run: two
// copies of the weights, micro-batches in slices; a first stage of nothing but a spread embedding.
Result<Pipeline> pipeline_of(const mesh::Layout& layout, int num_layers, bool train);

}  // namespace ptrain::program
