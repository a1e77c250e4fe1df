#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/run/directory.h"
#include "core/run/plan.h"
#include "core/run/request.h"
#include "launcher/start/backend.h"
#include "launcher/supervise/event_log.h"
#include "launcher/supervise/goodput.h"
#include "launcher/supervise/lifecycle.h"
#include "launcher/supervise/measurements.h"
#include "launcher/supervise/progress.h"
#include "launcher/supervise/run_folder.h"
#include "launcher/supervise/signals.h"
#include "launcher/supervise/time_limit.h"

namespace ptrain::supervise {

struct Setup;  // supervisor.h

// Ends what ranks with this token have left behind on nodes of a job: Slurm itself does so only
// where it follows processes by control groups.
using Sweep = std::function<void(const std::vector<std::string>& nodes, const std::string& token)>;

struct AttemptSetup {
  const start::Backend& backend;
  start::Launch launch;  // request_file and token are filled in
  run::Request request;  // control_host and control_port are filled in
  run::Directory directory;
  const FolderWatch& folder;
  double hang_timeout_s = 0;
  std::vector<std::string> rank_nodes;  // where each rank is
  JobClock* clock = nullptr;            // of the Slurm job that this is part of; null: of none
  int apart = 0;  // a process of ours that outlives attempts; 0: there is none
  Sweep sweep = {};
};

struct AttemptEnd {
  run::Verdict verdict;
  std::string next_shape;
  bool time_is_up = false;      // it was stopped because the Slurm job ends
  std::int64_t published = -1;  // step of the last checkpoint that ranks told of; -1: none
};

// Attempt `number` at one shape of `plan`, which may be another than the run's: makes its folder
// and leaves the plan there. `folder` must outlive the result.
Result<AttemptSetup> prepare_attempt(const Setup& setup, const FolderWatch& folder,
                                     const run::Plan& plan, const run::ShapePlan& shape,
                                     int number);

// Who is told what happens in attempts.
struct Listeners {
  EventLog& log;
  Progress& progress;
  Measurements& measurements;
  Goodput& goodput;
  SaveTimes& save_times;
};

// Starts the ranks and drives a Lifecycle with the real clock, signals and processes. When it
// returns, no process of the attempt is left.
Result<AttemptEnd> run_attempt(AttemptSetup setup, const Listeners& listeners,
                               StopSignals& signals);

}  // namespace ptrain::supervise
