#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/run/directory.h"
#include "core/run/event.h"
#include "core/run/plan.h"
#include "launcher/preflight/preflight.h"
#include "launcher/start/backend.h"
#include "launcher/supervise/attempt.h"
#include "launcher/supervise/guard.h"
#include "launcher/supervise/places.h"
#include "launcher/supervise/signals.h"
#include "launcher/supervise/time_limit.h"

namespace ptrain::supervise {

struct Setup {
  run::Directory directory;
  run::Plan plan;
  const start::Backend& backend;
  std::string worker;                          // absolute path of the ptrain binary
  StopSignals& signals;                        // held from before anything of the run was written
  bool by_hand = true;                         // someone may press Ctrl-C
  std::string job = {};                        // of Slurm, where there is one
  std::string next_task = {};                  // of its array, that goes on when Slurm ends it
  std::string here = {};                       // the node of that job that this process is on
  std::optional<JobClock::Time> job_end = {};  // as far as the environment tells it
  double expected_save_s = 30;                 // of a checkpoint, before any was written
  std::vector<std::string> nodes = {};         // of that job, in the order in which srun fills them
  Replan replan = {};                          // for fewer of these nodes
  std::vector<std::string> before_worker = {};  // words before it, where it is a copy
  Guard::Command guard = nullptr;               // of a job's node, but this one
  Sweep sweep = {};
  // Looks at the plan's nodes before the first attempt: what is to know, or why it cannot start.
  std::function<Result<preflight::Settled>(const run::Plan&)> preflight = {};
};

// Runs attempt after attempt until the plan's shapes are done, the run cannot go on, or it is
// stopped. In a Slurm job attempts do without nodes that failed, by a new plan where too few are
// left, which then replaces plan.json. Writes events.jsonl and verdict.json and says the verdict,
// which may be an error of ours beside the ranks' own, in one line on stderr. The caller holds the
// run's lock.
run::Verdict supervise(const Setup& setup);

}  // namespace ptrain::supervise
