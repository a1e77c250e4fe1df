#include "launcher/supervise/supervisor.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <utility>

#include "core/recipe/shapes.h"
#include "launcher/supervise/attempt.h"
#include "launcher/supervise/measurements.h"
#include "launcher/supervise/narrate.h"
#include "launcher/supervise/policy.h"
#include "launcher/supervise/processes.h"
#include "launcher/supervise/report.h"
#include "launcher/supervise/run_folder.h"

namespace ptrain::supervise {

namespace {

class Supervisor {
 public:
  explicit Supervisor(const Setup& setup)
      : setup_(setup),
        log_(setup.directory),
        progress_(stderr, recipe::total_steps(setup.plan.recipe),
                  setup.plan.recipe.log.every_steps) {}

  run::Verdict run();

 private:
  Result<AttemptEnd> attempt(const std::string& shape);
  Decision judge(const AttemptEnd& end);
  // Said once: a full disk, or a run directory that is gone, takes none of several files.
  void note(const Status& written) {
    if (!written && !std::exchange(noted_, true))
      progress_.say("warning: " + written.error().message);
  }
  run::Verdict finish(const run::Verdict& verdict);
  run::Verdict finish(const Error& error);
  void say_all(const std::vector<std::string>& lines) {
    for (const auto& line : lines) progress_.say(line);
  }

  std::int64_t newest_checkpoint() const {
    const auto steps = checkpoint_steps(setup_.directory);
    return steps.empty() ? -1 : steps.back();
  }
  // The shape of the next step, as far as the names of checkpoints tell. When the newest is
  // damaged the engine knows better, and asks for another shape.
  // With all steps done, someone has found the last checkpoint damaged.
  std::string next_shape() const {
    const auto name =
        next_shape_name(setup_.plan, std::max(newest_checkpoint(), setup_.plan.origin.step));
    return name.empty() ? setup_.plan.shapes.back().name : name;
  }

  const Setup& setup_;
  EventLog log_;
  Progress progress_;
  Measurements measurements_;
  FolderWatch folder_{setup_.directory};
  int attempt_ = 0;
  int num_restarts_ = 0;
  std::int64_t checkpoint_before_ = -1;
  bool noted_ = false;
};

Result<AttemptEnd> Supervisor::attempt(const std::string& shape) {
  const auto& shapes = setup_.plan.shapes;
  const auto found = std::ranges::find(shapes, shape, &run::ShapePlan::name);
  if (found == shapes.end())
    return fail(ExitCode::kUsage, fmt::format("the plan has no shape '{}'", shape));
  attempt_ = next_attempt(setup_.directory);
  log_.set_attempt(attempt_);
  checkpoint_before_ = newest_checkpoint();
  PTRAIN_TRY(const AttemptSetup prepared,
             prepare_attempt(setup_, folder_, setup_.plan, *found, attempt_));
  PTRAIN_CHECK(log_.write(run::EventKind::kAttemptStarted, -1,
                          {{"shape", shape}, {"num_ranks", prepared.launch.num_ranks}}));
  return run_attempt(prepared, log_, progress_, measurements_, setup_.signals);
}

Decision Supervisor::judge(const AttemptEnd& end) {
  const Decision decision =
      decide({end.verdict, end.next_shape, num_restarts_, setup_.plan.recipe.failure.max_restarts,
              checkpoint_before_, newest_checkpoint(), !folder_.is_there()});
  // A full disk must not keep the run from its verdict.
  note(log_.write(run::EventKind::kAttemptEnded, -1, run::to_json(end.verdict)));
  note(log_.write(run::EventKind::kDecision, -1,
                  {{"code", static_cast<int>(decision.code)}, {"next", decision.next}}));
  return decision;
}

run::Verdict Supervisor::finish(const run::Verdict& verdict) {
  progress_.finish();
  // Said even when a full disk takes no more files: it may be all that is left of the verdict.
  note(log_.write(verdict));
  note(log_.write(run::EventKind::kRunEnded, -1,
                  {{"code", static_cast<int>(verdict.code)}, {"reason", verdict.reason}}));
  say_all(measurements_.beside(setup_.plan));
  say_all(failure_lines(setup_.directory, verdict));
  progress_.say("run directory: " + setup_.directory.root);
  progress_.say(verdict_line(verdict));
  return verdict;
}

// The ranks could not even be started.
run::Verdict Supervisor::finish(const Error& error) {
  run::Verdict verdict;
  verdict.code = error.code;
  verdict.reason = error.message;
  verdict.next = error.hint;
  verdict.attempt = attempt_;
  return finish(verdict);
}

run::Verdict Supervisor::run() {
  adopt_orphans();
  ::signal(SIGPIPE, SIG_IGN);  // a reader of our output that ends must not end the run
  say_all(start_lines(setup_.plan, setup_.directory));
  std::string shape = next_shape();
  for (;;) {
    const auto ended = attempt(shape);
    if (!ended) return finish(ended.error());
    const AttemptEnd& end = *ended;
    const Decision decision = judge(end);
    run::Verdict verdict = end.verdict;
    if (verdict.step == 0)  // it ended before its first step
      verdict.step = std::max({verdict.step, newest_checkpoint(), setup_.plan.origin.step});
    verdict.code = decision.code;
    verdict.next = decision.next;
    if (decision.action == AfterAttempt::kFinish) return finish(verdict);
    if (decision.action == AfterAttempt::kRestart) {
      ++num_restarts_;
      progress_.say(verdict_line(verdict));
      shape = next_shape();
    } else {
      shape = end.next_shape;
    }
  }
}

}  // namespace

run::Verdict supervise(const Setup& setup) { return Supervisor(setup).run(); }

}  // namespace ptrain::supervise
