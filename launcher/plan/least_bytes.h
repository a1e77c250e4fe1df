#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/mesh/stages.h"
#include "core/program/memory.h"
#include "launcher/plan/cut_sample.h"
#include "launcher/plan/search.h"

namespace ptrain::plan {

// Stages' stashes that each rank of a layout's pipeline holds at once; those of one stage are one.
// By schedule, which is made once for all layouts of a search that have it.
class StashCounts {
 public:
  const std::vector<double>& of(const mesh::Layout& layout);

 private:
  std::map<std::tuple<std::string, int, int, std::int64_t>, std::vector<double>> known_;
};

// What the fullest rank of a layout holds at least, without its program: what lasts, stashes at
// their peak, what is gathered and reduced at once.
class LeastBytes {
 public:
  // All must outlive it.
  LeastBytes(const SearchInput& input, const CutSample& cut, StashCounts& counts);

  std::int64_t of(const mesh::Layout& layout);

 private:
  // Of one layer of the sample.
  struct Held {
    std::int64_t lasting = 0, gathered = 0, gradients = 0;
  };
  struct Rank;
  Held held_by(int layer, const mesh::Layout& layout) const;
  const std::vector<Held>& held_by_layers(const mesh::Layout& layout);
  // A stage's layers, on the rank that has it.
  void add_stage(const mesh::StageLayers& layers, program::Keep keep,
                 const program::MemoryContext& context, Rank& rank);

  const SearchInput& input_;
  const CutSample& cut_;
  StashCounts& counts_;
  std::map<int, std::vector<Held>> held_;  // by zero
};

}  // namespace ptrain::plan
