#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/divide.h"
#include "core/model/architecture.h"

namespace ptrain::model {

// One tensor of a parameter's optimizer state, under the name that torch.optim gives it: a value
// for each `block` elements of the parameter, counted from its start; the last may stand for fewer.
struct StateTensor {
  std::string name;
  DType dtype = DType::kFloat32;
  std::int64_t block = 1;
  // Of elements that begin on a block.
  std::int64_t num_values(std::int64_t elements) const { return divide_up(elements, block); }
  // As a whole: the parameter's own, or one dim of blocks.
  std::vector<std::int64_t> shape(const ParameterSpec& parameter) const;
  bool operator==(const StateTensor&) const = default;
};

// What a parameter's rule keeps from step to step. Values of 8 bits have the largest magnitude of
// each run beside them, as `<name>_absmax` in float32 whatever the model's dtype.
std::vector<StateTensor> state_of(const ParameterSpec& parameter, DType dtype);

// Whether the rule counts steps, which torch.optim then keeps as `step` beside the state.
bool counts_steps(UpdateRule rule);

}  // namespace ptrain::model
