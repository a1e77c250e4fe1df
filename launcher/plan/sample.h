#pragma once

#include <vector>

#include "core/model/architecture.h"

namespace ptrain::plan {

// A model with one layer of each kind that another has. What one of them costs and holds, all of
// its kind do; a deep model, or one with many experts, is cut into parts for a fraction of the
// time.
struct Sample {
  model::Architecture architecture;
  std::vector<int> likes;  // by layer of the whole: the layer of the sample that is like it
};

Sample sample_of(const model::Architecture& whole);

}  // namespace ptrain::plan
