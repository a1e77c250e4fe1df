#pragma once

#include <cstdint>
#include <string>

#include "core/run/plan.h"
#include "engine/data/loader.h"

namespace ptrain::train {

// Where training stands; with parameters and moments all that a checkpoint holds.
struct Progress {
  std::int64_t step = 0;          // finished, over all shapes
  std::int64_t tokens_total = 0;  // target tokens trained on
  data::Position position;
  std::string train_hash;       // of the token indices; empty before the first checkpoint
  std::string validation_hash;  // empty: no validation data
};

// Which shape a run is in after `step` finished steps, and which steps that shape covers.
struct ShapeSpan {
  std::size_t index = 0;
  std::int64_t first_step = 0;  // finished steps before the shape
  std::int64_t last_step = 0;   // finished steps after it
  bool operator==(const ShapeSpan&) const = default;
};
// Past the last step: the last shape.
ShapeSpan shape_after(const recipe::Recipe& recipe, std::int64_t step);
std::int64_t total_steps(const recipe::Recipe& recipe);

}  // namespace ptrain::train
