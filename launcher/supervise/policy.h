#pragma once

#include <cstdint>
#include <string>

#include "core/run/event.h"
#include "core/run/plan.h"

namespace ptrain::supervise {

// What is known when an attempt has ended.
struct Past {
  run::Verdict verdict;
  std::string next_shape;  // of a finished shape
  int num_restarts = 0;    // after failures, so far
  int max_restarts = 0;
  std::int64_t checkpoint_before = -1;  // step of the newest one when the attempt began; -1: none
  std::int64_t checkpoint_now = -1;
  bool folder_lost = false;  // the run directory was removed or moved
};

enum class AfterAttempt { kFinish, kNextShape, kRestart };

struct Decision {
  AfterAttempt action = AfterAttempt::kFinish;
  ExitCode code = ExitCode::kDone;  // of the run, with kFinish
  std::string next;                 // one line: what happens, or what the user can do
};

// After success: the next shape, or the end. After a failure that another start may cure: start
// again while the budget lasts, but not twice from the same checkpoint (kNoProgress).
Decision decide(const Past& past);

// The run ended neither as it should nor because it was asked to.
bool is_failure(ExitCode code);

// The name of the shape that the step after `step` finished ones belongs to; empty: all are done.
std::string next_shape_name(const run::Plan& plan, std::int64_t step);

}  // namespace ptrain::supervise
