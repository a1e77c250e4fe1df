#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/program/memory.h"
#include "launcher/plan/cuts.h"
#include "launcher/plan/pipelines.h"
#include "launcher/plan/search.h"

namespace ptrain::plan {

// Stages' stashes that a rank of a pipeline holds at once: those that wait for their backward, and
// those of which only products of weights' gradients are left to do.
struct HeldStashes {
  int num_waiting = 1, num_queued = 0;
};

// By rank, at the moments of which no other has more of both. By schedule, which is made once for
// all layouts of a search that have it.
class StashCounts {
 public:
  using Moments = std::vector<HeldStashes>;
  const std::vector<Moments>& of(const mesh::Layout& layout);
  std::int64_t num_cells() const { return num_cells_; }  // of all schedules made

 private:
  std::vector<Moments> counted(const mesh::Layout& layout, std::int64_t num_micro_batches);

  std::map<std::tuple<int, int, std::int64_t, std::string>, std::vector<Moments>> known_;
  std::int64_t num_cells_ = 0;
};

// What the fullest rank of a layout holds at least, without its program: what lasts, stashes at
// their peak, what is gathered and reduced at once.
class LeastBytes {
 public:
  // All must outlive it.
  LeastBytes(const SearchInput& input, Cuts& cuts, Pipelines& pipelines);

  // 0 where it is not known.
  std::int64_t of(const mesh::Layout& layout);
  // Cells of schedules that were made for it.
  std::int64_t num_cells() const { return counts_.num_cells(); }

 private:
  // Of the parameters of one layer of the sample.
  struct Held {
    std::int64_t lasting = 0, gathered = 0;
    std::int64_t gradients = 0, last_gradients = 0;  // whole, of all its groups and of the last
    bool is_block = false;
  };
  // Of one micro-batch of it: what it keeps for its backward, then for weights' gradients, and its
  // scratch.
  struct Call {
    std::int64_t stash = 0, queued = 0, temporary = 0;
  };
  struct Rank;
  using CallKey = std::array<std::int64_t, 8>;
  using HeldKey = std::array<int, 7>;

  Held held_by(int layer, const CutState& cut, const mesh::Layout& layout) const;
  Result<const std::vector<Held>*> held_of(const mesh::Layout& layout);
  Result<const std::vector<Call>*> calls_of(const mesh::Layout& layout,
                                            recipe::Recompute recompute);
  // A stage's layers, on the rank that has it.
  void add_held(const StageKinds& kinds, const mesh::Layout& layout, const std::vector<Held>& held,
                Rank& rank) const;
  void add_calls(const StageKinds& kinds, const std::vector<Call>& calls, Rank& rank) const;
  void add_embedding(const std::vector<Held>& held, Rank& rank) const;
  // None where it is not known.
  std::vector<Rank> ranks_of(const mesh::Layout& layout, const std::vector<Held>& held);
  static std::int64_t most_of(const Rank& rank, const StashCounts::Moments& moments);

  const SearchInput& input_;
  Cuts& cuts_;
  Pipelines& pipelines_;
  StashCounts counts_;
  // By tp, cp, ulysses, ep, etp, rows, Recompute, whether there are several stages.
  std::map<CallKey, std::vector<Call>> calls_;
  // By tp, ep, etp, shards of dense parameters and of experts, zero, window: both by layer of the
  // sample.
  std::map<HeldKey, std::vector<Held>> held_;
};

}  // namespace ptrain::plan
