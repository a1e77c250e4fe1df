#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/run/control.h"
#include "engine/execute/router_report.h"

namespace ptrain::train {

// metrics.jsonl: one line a step, written by rank 0. Opening cuts lines of steps after `step` (a
// run that continues from an older checkpoint does those again) and a torn last line. While the
// disk is full, lines are kept, and written once it is not.
class Metrics {
 public:
  Metrics(std::string path, std::int64_t step, int attempt);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // The first time that the disk is full: that, in words.
  std::optional<std::string> write(const run::StepDone& step,
                                   const std::optional<execute::RouterReport>& routers = {});

 private:
  bool append();

  std::string path_;
  int attempt_;
  int file_ = -1;
  std::int64_t size_ = 0;  // of the file
  std::string unwritten_;
  bool told_ = false;
};

}  // namespace ptrain::train
