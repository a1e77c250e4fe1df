#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/start_run.h"
#include "launcher/base/plan_file.h"
#include "launcher/supervise/event_log.h"
#include "launcher/supervise/policy.h"
#include "launcher/supervise/run_folder.h"

namespace ptrain::cli {

Result<ExitCode> cmd_resume(const ResumeArguments& arguments) {
  PTRAIN_TRY(const run::Directory directory, supervise::open_run(arguments.run));
  PTRAIN_TRY(const run::Plan plan, read_plan(directory.plan()));
  const auto steps = supervise::checkpoint_steps(directory);
  const std::int64_t step = steps.empty() ? -1 : steps.back();
  if (supervise::shape_after(plan, step).empty()) {
    say(fmt::format("ptrain: {} is finished: all of its {} steps are done", directory.root, step));
    return ExitCode::kDone;
  }
  say(step < 0 ? "ptrain: no checkpoint yet, so the run starts from the beginning"
               : fmt::format("ptrain: continuing from {}", directory.checkpoint(step)));
  return start_run(directory, plan);
}

}  // namespace ptrain::cli
