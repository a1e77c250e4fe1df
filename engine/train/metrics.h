#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/run/control.h"
#include "engine/execute/router_report.h"

namespace ptrain::train {

// metrics.jsonl: one line a step, written by rank 0. Opening cuts lines of steps after `step` (a
// run that continues from an older checkpoint does those again) and a torn last line.
class Metrics {
 public:
  Metrics(std::string path, std::int64_t step, int attempt);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  void write(const run::StepDone& step, const std::optional<execute::RouterReport>& routers = {});

 private:
  std::string path_;
  int attempt_;
  int file_ = -1;
};

}  // namespace ptrain::train
