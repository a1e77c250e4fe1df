#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/parity/record.h"
#include "core/recipe/recipe.h"

namespace ptrain::parity {

// How far, relative to the reference's norm, tensors of a stage may lie apart. Of kUpdated it is
// the updates that are compared, each value's times its gradient: sums that are rounded otherwise
// turn the sign of a gradient near zero, and with it the whole step of an optimizer such as AdamW,
// which divides by the gradient's size. Weighed so, updates lie apart by about what the gradients
// do. Values without a gradient are left to a second measure: no parameter may end up farther from
// the reference than the way that this one went.
double tolerance(Stage stage, recipe::Precision precision);

// One tensor beside the reference's.
struct Difference {
  Key key;
  std::string name;
  double relative = 0;  // NaN: one of them is not finite; of choices: the share that differs
  double allowed = 0;
  std::string detail = {};  // of choices: the first that differs
  bool differs() const { return !(relative <= allowed); }
};

struct StageResult {
  Stage stage = Stage::kRows;
  int num_compared = 0;
  int num_different = 0;
  // Parameters whose gradient is zero but for rounding: what an optimizer makes of such is noise.
  int num_noise = 0;
  Difference largest;
};

struct Comparison {
  std::vector<StageResult> stages;            // in the order of Stage
  std::optional<Difference> first_segment;    // of rows, choices, forward, loss, backward, step
  std::optional<Difference> first_parameter;  // of the others
  bool equal() const { return !first_segment && !first_parameter; }
};

// A layout's records, of all its ranks, beside those of one rank. Errors (kUnusable): one of them
// lacks a tensor that the other has.
Result<Comparison> compare(const Records& layout, const Records& reference,
                           recipe::Precision precision);

// "forward: block 3, micro-batch 1", "gradients: model.norm.weight, replica 0", "choices of
// experts: router of block 3, micro-batch 1: token 17 chose experts 2, 5, on one rank 2, 4"
std::string describe(const Difference& difference);

}  // namespace ptrain::parity
