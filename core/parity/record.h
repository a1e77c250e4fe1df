#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/parity/sketch.h"

namespace ptrain::parity {

// What is compared of one step, in the order in which a step makes it.
enum class Stage {
  kRows,      // tokens, targets and positions of a micro-batch
  kInitial,   // parameters before the step
  kRouting,   // the experts that a router chose
  kForward,   // the stream after each layer
  kLoss,      // of a micro-batch, and its targets
  kBackward,  // the gradient of the stream before each layer, last layer first
  kGradient,  // of each parameter after its reduction, last layer first
  kStep,      // what GRAD_NORM makes
  kUpdated    // parameters after OPTIMIZER
};
inline constexpr int kNumStages = 9;
std::string_view to_string(Stage stage);

// Whether what is compared are parameters, or something of one, once for each replica; else it is
// of a micro-batch, or of the whole step.
bool is_of_parameters(Stage stage);

// Where a tensor stands in a step. `part`: the micro-batch, counted over all ranks, or the replica.
struct Key {
  Stage stage = Stage::kRows;
  int position = 0;  // within the stage
  int part = 0;
  auto operator<=>(const Key&) const = default;
};

// Of a token of a micro-batch, ascending; ~expert: it had no room for the token.
using Choices = std::map<std::int64_t, std::vector<std::int32_t>>;

struct Recorded {
  std::string name;
  Sketch sketch;
  Choices choices = {};  // in place of a sketch
  // Of kGradient and kUpdated: the parameter before and after the update, each value times its
  // gradient.
  Sketch weighed = {};
  bool operator==(const Recorded&) const = default;
};
using Records = std::map<Key, Recorded>;

// Adds the pieces that another rank recorded.
void add(Records& records, const Records& more);

std::string to_text(const Records& records);
Result<Records> records_from_text(std::string_view text, std::string_view what);

}  // namespace ptrain::parity
