#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/execute/step_end.h"
#include "engine/train/metrics.h"
#include "engine/train/progress.h"
#include "engine/train/router_watch.h"
#include "engine/train/shape_run.h"
#include "engine/train/trainer.h"

namespace ptrain::train {

// What a rank tells of its training: step lines and metrics (rank 0), warnings, and at the end what
// was measured of all that the plan predicted.
class Reporter {
 public:
  // `step`: finished before this attempt.
  Reporter(const TrainInput& input, ShapeRun& shape, std::int64_t step);

  void step(const execute::StepResult& result, const Progress& progress, double learning_rate,
            double step_s);
  // An event of the whole run: rank 0 says it for all.
  void event(run::EventKind kind, nlohmann::json fields);
  void warn(const std::string& message);
  void shape_finished(std::int64_t step);

 private:
  bool is_first() const { return input_.world.rank() == 0; }
  double model_flops_share(double tokens_per_s) const;

  const TrainInput& input_;
  ShapeRun& shape_;
  std::optional<Metrics> metrics_;
  RouterWatch router_watch_;
  std::vector<double> step_times_;
};

}  // namespace ptrain::train
