#pragma once

#include <string>

#include "core/run/directory.h"
#include "core/run/plan.h"
#include "core/run/request.h"
#include "launcher/start/backend.h"
#include "launcher/supervise/event_log.h"
#include "launcher/supervise/lifecycle.h"
#include "launcher/supervise/measurements.h"
#include "launcher/supervise/progress.h"
#include "launcher/supervise/run_folder.h"
#include "launcher/supervise/signals.h"

namespace ptrain::supervise {

struct Setup;  // supervisor.h

struct AttemptSetup {
  const start::Backend& backend;
  start::Launch launch;  // request_file and token are filled in
  run::Request request;  // control_host and control_port are filled in
  run::Directory directory;
  const FolderWatch& folder;
  double hang_timeout_s = 0;
};

struct AttemptEnd {
  run::Verdict verdict;
  std::string next_shape;
};

// Attempt `number` at one shape of `plan`, which may be another than the run's: makes its folder
// and leaves the plan there. `folder` must outlive the result.
Result<AttemptSetup> prepare_attempt(const Setup& setup, const FolderWatch& folder,
                                     const run::Plan& plan, const run::ShapePlan& shape,
                                     int number);

// Starts the ranks and drives a Lifecycle with the real clock, signals and processes. When it
// returns, no process of the attempt is left.
Result<AttemptEnd> run_attempt(AttemptSetup setup, EventLog& log, Progress& progress,
                               Measurements& measurements, StopSignals& signals);

}  // namespace ptrain::supervise
