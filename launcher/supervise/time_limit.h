#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/base/subprocess.h"

namespace ptrain::supervise {

// The end of a job by what `scontrol show job` says, in this machine's time zone. None: no limit.
std::optional<std::chrono::system_clock::time_point> job_end(std::string_view shown);

// How long the steps and checkpoints of a run take.
class SaveTimes {
 public:
  SaveTimes() = default;
  explicit SaveTimes(double expected_s) : expected_s_(expected_s) {}

  void step(double seconds);
  void save_started(double now);
  void save_ended(double now);

  // Seconds before the end of a job at which the last checkpoint has to be asked for: twice the
  // step that is going on, half as much again as the longest save so far, and some for Slurm.
  double reserve_s() const;

 private:
  double expected_s_ = 30;  // of a save, before any was seen
  double step_s_ = 0;       // the longest of late
  double save_s_ = -1;      // the longest; -1: none yet
  std::optional<double> started_;
};

// When a Slurm job ends. Slurm is asked again every minute, since limits can be changed, and never
// waited for.
class JobClock {
 public:
  using Time = std::chrono::system_clock::time_point;

  // `end`: as far as it is known already. Without a job there is no limit.
  JobClock(std::string job, std::optional<Time> end) : job_(std::move(job)), end_(end) {}

  std::optional<double> left_s();

 private:
  void ask();

  std::string job_;
  std::optional<Time> end_;
  std::optional<base::Subprocess> question_;
  std::string answer_;
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now();
};

}  // namespace ptrain::supervise
