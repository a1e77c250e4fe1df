#include "launcher/supervise/policy.h"

#include <fmt/ranges.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/recipe/shapes.h"

namespace ptrain::supervise {

namespace {

constexpr int kUnlimited = 1 << 30;
constexpr double kLongestWait = 60;
constexpr int kStrikes = 2;

// What a cause may cost before the run is given up.
struct Budget {
  int tries = 0;      // attempts in a row that end without a newer checkpoint; 0: never again
  double wait_s = 0;  // before the second restart in such a row; doubled for each further one
};

Budget budget_of(ExitCode code) {
  switch (code) {
    case ExitCode::kRankError:
    case ExitCode::kRankSignal:
    case ExitCode::kHang:
      return {3, 2};
    case ExitCode::kOutOfMemory:  // the same plan takes the same memory again
      return {2, 0};
    case ExitCode::kNodeLost:  // each time there is a node less
      return {kUnlimited, 0};
    default:
      return {};
  }
}

std::string advice(const Past& past) {
  if (past.folder_lost)
    return fmt::format("move it back and continue with {}, or start a new run", past.resume);
  const std::string resume =
      past.checkpoint < 0
          ? fmt::format("no checkpoint was written: {} starts where this run began", past.resume)
          : fmt::format("continue from step {} with {}", past.checkpoint, past.resume);
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

// Attempts at the end of the list that left the same newest checkpoint; lost nodes are not counted.
int num_without_progress(const std::vector<Failure>& failures) {
  int count = 0;
  for (auto one = failures.rbegin(); one != failures.rend(); ++one) {
    if (one->checkpoint != failures.back().checkpoint) break;
    count += one->code == ExitCode::kNodeLost ? 0 : 1;
  }
  return count;
}

// How often the last failure has come at this step, in a row. Steps are told a little late.
int num_same(const std::vector<Failure>& failures) {
  const Failure& last = failures.back();
  int count = 0;
  for (auto one = failures.rbegin(); one != failures.rend(); ++one) {
    if (one->code != last.code || one->rank != last.rank || one->checkpoint != last.checkpoint ||
        std::abs(one->step - last.step) > 1)
      break;
    ++count;
  }
  return count;
}

int num_strikes(const std::vector<Failure>& failures, const std::string& node) {
  return static_cast<int>(std::ranges::count_if(failures, [&](const Failure& failure) {
    return std::ranges::find(failure.nodes, node) != failure.nodes.end();
  }));
}

// A lost node, or the one where ranks have failed before and more often than elsewhere.
std::vector<std::string> nodes_to_blame(const Past& past) {
  const Failure& last = past.failures.back();
  if (past.num_nodes < 2) return {};
  if (last.code == ExitCode::kNodeLost) return last.nodes;
  if (last.nodes.size() != 1 || num_strikes(past.failures, last.nodes[0]) < kStrikes) return {};
  for (const Failure& failure : past.failures)
    for (const auto& other : failure.nodes)
      if (other != last.nodes[0] &&
          num_strikes(past.failures, other) >= num_strikes(past.failures, last.nodes[0]))
        return {};
  return last.nodes;
}

Decision give_up(const Past& past, ExitCode code, const std::string& why) {
  const std::string what = advice(past);
  return {AfterAttempt::kFinish, code, why.empty() ? what : why + "; " + what, 0, {}};
}

// Who loses all others at once has most likely lost its own network.
bool all_others_lost(const Past& past) {
  const auto lost = static_cast<int>(past.failures.back().nodes.size());
  return past.verdict.code == ExitCode::kNodeLost && lost > 1 && lost >= past.num_nodes - 1;
}

Decision restart(const Past& past, double wait_s, std::vector<std::string> exclude) {
  std::string next = past.checkpoint < 0
                         ? "a new attempt starts from the beginning"
                         : fmt::format("a new attempt starts from step {}", past.checkpoint);
  if (!exclude.empty()) next += fmt::format(", without {}", fmt::join(exclude, ", "));
  if (wait_s > 0) next += fmt::format(", in {:.0f} s", wait_s);
  return {AfterAttempt::kRestart, past.verdict.code, next, wait_s, std::move(exclude)};
}

Decision after_failure(const Past& past) {
  const ExitCode code = past.verdict.code;
  const Budget budget = budget_of(code);
  if (budget.tries == 0 || past.max_restarts == 0) return give_up(past, code, "");
  if (past.max_restarts && past.num_restarts >= *past.max_restarts)
    return give_up(past, code, fmt::format("all {} restarts are used", *past.max_restarts));
  if (code == ExitCode::kNodeLost && past.num_nodes < 2)
    return give_up(past, code, "no other node is left");
  if (all_others_lost(past))
    return give_up(past, code,
                   "all other nodes at once: the network of the node where ptrain runs may be cut");
  auto exclude = nodes_to_blame(past);
  const int tried = num_without_progress(past.failures);
  if (exclude.empty() && code != ExitCode::kNodeLost && num_same(past.failures) > 1)
    return give_up(past, ExitCode::kNoProgress,
                   fmt::format("the same failure at step {} again, so no further start",
                               past.failures.back().step));
  if (tried >= budget.tries)
    return give_up(
        past, ExitCode::kNoProgress,
        fmt::format("{} failures without a newer checkpoint, so no further start", tried));
  const double wait = tried < 2 ? 0 : std::min(kLongestWait, budget.wait_s * std::exp2(tried - 2));
  return restart(past, wait, std::move(exclude));
}

}  // namespace

Decision decide(const Past& past) {
  const ExitCode code = past.verdict.code;
  if (code == ExitCode::kDone && !past.next_shape.empty())
    return {AfterAttempt::kNextShape, code, "the next shape starts: " + past.next_shape, 0, {}};
  return is_failure(code) ? after_failure(past) : give_up(past, code, "");
}

bool is_failure(ExitCode code) {
  return code != ExitCode::kDone && code != ExitCode::kStopped && code != ExitCode::kPreempted;
}

bool is_end_of_job(ExitCode code) {
  return code == ExitCode::kPreempted || static_cast<int>(code) == 128 + SIGTERM;
}

std::string next_shape_name(const run::Plan& plan, std::int64_t step) {
  const auto span = recipe::shape_after(plan.recipe, step);
  return step < span.last_step ? plan.recipe.shapes[span.index].name : "";
}

}  // namespace ptrain::supervise
