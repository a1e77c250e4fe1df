#include "launcher/supervise/policy.h"

#include <fmt/format.h>

#include "core/recipe/shapes.h"

namespace ptrain::supervise {

namespace {

bool another_start_may_cure(ExitCode code) {
  switch (code) {
    case ExitCode::kRankError:
    case ExitCode::kRankSignal:
    case ExitCode::kOutOfMemory:
    case ExitCode::kHang:
    case ExitCode::kNodeLost:
      return true;
    default:
      return false;
  }
}

std::string advice(const Past& past) {
  if (past.folder_lost)
    return "move it back and continue with `ptrain resume`, or start again with `ptrain run`";
  const std::string resume =
      past.checkpoint_now < 0
          ? "no checkpoint was written: start again with `ptrain run`"
          : fmt::format("continue from step {} with `ptrain resume`", past.checkpoint_now);
  switch (past.verdict.code) {
    case ExitCode::kDone:
      return "";
    case ExitCode::kOutOfMemory:
      return "use smaller micro-batches or more ranks; " + resume;
    case ExitCode::kNonFinite:
      return "lower the learning rate or look at the data; " + resume;
    case ExitCode::kEnvironment:
    case ExitCode::kUnusable:
      return "mend what the message names; " + resume;
    default:
      return resume;
  }
}

}  // namespace

Decision decide(const Past& past) {
  const ExitCode code = past.verdict.code;
  if (code == ExitCode::kDone && !past.next_shape.empty())
    return {AfterAttempt::kNextShape, code, "the next shape starts: " + past.next_shape};
  if (!another_start_may_cure(code) || past.max_restarts == 0)
    return {AfterAttempt::kFinish, code, advice(past)};
  if (past.num_restarts > 0 && past.checkpoint_now == past.checkpoint_before)
    return {AfterAttempt::kFinish, ExitCode::kNoProgress,
            "failed again without a newer checkpoint, so no further start; " + advice(past)};
  if (past.num_restarts >= past.max_restarts)
    return {AfterAttempt::kFinish, code,
            fmt::format("all {} restarts are used; {}", past.max_restarts, advice(past))};
  return {AfterAttempt::kRestart, code,
          past.checkpoint_now < 0
              ? std::string("a new attempt starts from the beginning")
              : fmt::format("a new attempt starts from step {}", past.checkpoint_now)};
}

bool is_failure(ExitCode code) {
  return code != ExitCode::kDone && code != ExitCode::kStopped && code != ExitCode::kPreempted;
}

std::string next_shape_name(const run::Plan& plan, std::int64_t step) {
  const auto span = recipe::shape_after(plan.recipe, step);
  return step < span.last_step ? plan.recipe.shapes[span.index].name : "";
}

}  // namespace ptrain::supervise
