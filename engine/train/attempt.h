#pragma once

#include <cstdint>
#include <optional>

#include "core/recipe/shapes.h"
#include "core/run/directory.h"
#include "engine/data/loader.h"
#include "engine/train/progress.h"
#include "engine/train/reporter.h"
#include "engine/train/run_data.h"
#include "engine/train/run_state.h"
#include "engine/train/shape_run.h"
#include "engine/train/trace.h"
#include "engine/train/trainer.h"

namespace ptrain::train {

// All that one rank works with while it trains one shape.
struct Attempt {
  explicit Attempt(const TrainInput& train_input);

  // The input of state_items and load_state.
  RankState rank_state();
  double learning_rate_of(std::int64_t step) const;
  execute::StepSettings settings_of(std::int64_t step) const;

  const TrainInput& input;
  const recipe::Recipe& recipe;
  run::Directory directory;
  std::int64_t total_steps;  // of the run

  Progress progress;
  std::int64_t first_step = 0;   // finished before this attempt
  std::int64_t saved_step = -1;  // of the newest checkpoint that is the run's own; -1: none yet
  recipe::ShapeSpan span;        // of the shape that is trained
  RunData data;
  // There once the attempt is open.
  std::optional<ShapeRun> shape;
  std::optional<data::Loader> loader;
  std::optional<Reporter> reporter;
  std::optional<Trace> trace;  // none: no step is traced
};

// Opens data, shape and loader of the attempt's span, and sets all to what `from` says. Collective
// over the world.
void begin(Attempt& attempt, const Start& from);

// Makes an attempt ready to train from the newest good checkpoint, or from the start. False, with
// only `span` set: that is in another shape than the attempt was started for. Collective over the
// world.
bool open(Attempt& attempt);

}  // namespace ptrain::train
