#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "launcher/plan/cuts.h"

namespace ptrain::plan {

// A stage by how many layers it has that are like each layer of the sample.
struct StageKinds {
  int rank = 0;  // of the pipeline, which works on it
  std::vector<int> num_like;
  std::vector<int> longest_run;  // of layers alike that follow each other
};

// Where layers lie in the pipelines of layouts, each found out once.
class Pipelines {
 public:
  explicit Pipelines(const std::vector<int>& likes) : likes_(likes) {}

  // By stage, in model order. None for what cannot be: whoever compiles it says why. What all
  // stages share, an embedding or a head, is left out.
  const std::vector<StageKinds>& of(const mesh::Layout& layout);

 private:
  std::vector<StageKinds> stages_of(const mesh::Layout& layout) const;

  using Key = std::tuple<int, int, bool, bool, std::string, std::vector<int>>;
  const std::vector<int>& likes_;  // by layer of the model: the layer of the sample
  std::map<Key, std::vector<StageKinds>> known_;
};

}  // namespace ptrain::plan
