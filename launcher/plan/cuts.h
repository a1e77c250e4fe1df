#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/mesh/buffer_plan.h"
#include "launcher/plan/sample.h"

namespace ptrain::plan {

// A sample's parameters as a rank of some degrees holds them, were there one stage: what layers of
// the whole model hold wherever the pipeline puts them.
struct CutState {
  const model::Architecture& part;
  std::vector<mesh::BufferPlan> buffers;
};

// A sample as ranks of any degrees see it, were there one stage. Degrees that see the same share
// one cut, which lives as long as this. Errors (kUsage) are those of mesh::part_of.
class Cuts {
 public:
  explicit Cuts(Sample sample) : sample_(std::move(sample)) {}

  // By layer of the whole: the layer of the sample that is like it.
  const std::vector<int>& likes() const { return sample_.likes; }
  const std::vector<model::LayerSpec>& layers() const { return sample_.architecture.layers; }
  // Groups of parameters of a layer of the sample, its experts' behind its own.
  std::vector<int> groups_of(int layer) const;

  // What layers compute; of its parameters only the head's matrix.
  Result<const model::Architecture*> work_of(const mesh::Layout& degrees);
  Result<const CutState*> state_of(const mesh::Layout& degrees);
  // How much was cut so far, in parameters.
  std::int64_t num_cut() const { return num_cut_; }

 private:
  template <std::size_t size>
  using Key = std::array<int, size>;
  Result<model::Architecture> cut(const mesh::Layout& degrees);
  Result<const model::Architecture*> whole_of(const mesh::Layout& degrees);

  const Sample sample_;
  std::map<Key<5>, Result<model::Architecture>> works_;   // by tp, cp, ulysses, ep, etp
  std::map<Key<3>, Result<model::Architecture>> wholes_;  // by tp, ep, etp
  std::map<Key<5>, CutState> states_;  // by the same, and over how many ranks they are sharded
  std::int64_t num_cut_ = 0;
};

}  // namespace ptrain::plan
