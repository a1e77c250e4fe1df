#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/run/directory.h"
#include "core/run/event.h"
#include "core/run/plan.h"
#include "launcher/report/trace.h"

namespace ptrain::report {

// A line of metrics.jsonl; a number that is missing or not finite is NaN.
struct Step {
  std::int64_t step = 0;
  std::string shape;
  double loss = 0, grad_norm = 0, learning_rate = 0;
  double step_s = 0, tokens_per_s = 0, tokens_total = 0, bytes_peak = 0;
};

// What the actions of a traced step were predicted to take.
struct PredictedStep {
  std::vector<Span> spans;  // of rank 0; empty: cannot be told, because of `missing`
  std::string figures;      // where the times come from
  std::string missing;
};

// A run directory as far as it can be read: a run that was killed still has its report.
struct Story {
  std::string folder;
  run::Plan plan;
  std::vector<Step> steps;
  std::vector<run::Event> events;
  int damaged_metrics = 0, damaged_events = 0;  // lines
  std::string state;                            // one line: how it stands or ended
  bool is_good = false;                         // it is done, or goes on
  TracedStep traced;
  PredictedStep predicted;  // of traced.step; who reads a story fills it in
};

Result<Story> read_story(const run::Directory& directory);

// The shape of a step, null where the plan has none for it.
const run::ShapePlan* shape_of(const Story& story, std::int64_t step);

}  // namespace ptrain::report
