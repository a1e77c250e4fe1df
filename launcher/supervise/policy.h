#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/run/event.h"
#include "core/run/plan.h"

namespace ptrain::supervise {

// One attempt that failed.
struct Failure {
  std::string job;  // of Slurm, that it was part of
  ExitCode code = ExitCode::kRankError;
  int rank = -1;
  std::int64_t step = 0;
  std::int64_t checkpoint = -1;    // step of the newest one when it had ended; -1: none
  std::vector<std::string> nodes;  // that were lost, or of the rank that failed first
  bool operator==(const Failure&) const = default;
};

// What is known when an attempt has ended.
struct Past {
  run::Verdict verdict;
  std::string next_shape;           // of a finished shape
  std::vector<Failure> failures;    // of this run; if the attempt failed, the last is its own
  int num_restarts = 0;             // after failures in this job, so far
  std::optional<int> max_restarts;  // none: as long as there is progress
  std::int64_t checkpoint = -1;     // step of the newest one; -1: none
  bool folder_lost = false;         // the run directory was removed or moved
  int num_nodes = 1;                // that ranks could be on
  std::string resume = {};          // the command that goes on with this run
};

enum class AfterAttempt { kFinish, kNextShape, kRestart };

struct Decision {
  AfterAttempt action = AfterAttempt::kFinish;
  ExitCode code = ExitCode::kDone;   // of the run, with kFinish
  std::string next;                  // one line: what happens, or what the user can do
  double wait_s = 0;                 // before the restart
  std::vector<std::string> exclude;  // nodes that later attempts of this job do without
};

// After success: the next shape, or the end. After a failure that another start may cure: start
// again, without the nodes that are to blame, while the budget of its cause lasts; a failure that
// comes back at the same step ends the run (kNoProgress).
Decision decide(const Past& past);

// The run ended neither as it should nor because it was asked to.
bool is_failure(ExitCode code);

// Slurm has ended the job, or is about to: its time is up, it is preempted or cancelled.
bool is_end_of_job(ExitCode code);

// The name of the shape that the step after `step` finished ones belongs to; empty: all are done.
std::string next_shape_name(const run::Plan& plan, std::int64_t step);

}  // namespace ptrain::supervise
