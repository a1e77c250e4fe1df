#include "cli/resume_checkpoint.h"

#include <fmt/format.h>

#include "cli/output.h"
#include "cli/planning.h"
#include "cli/start_run.h"
#include "cli/submit_run.h"
#include "launcher/base/file.h"
#include "launcher/resume/continuation.h"

namespace ptrain::cli {

namespace {

Status refuse_run(const std::string& path) {
  if (!is_regular_file(run::Directory{absolute_path(path)}.plan())) return {};
  return fail(
      ExitCode::kUsage, fmt::format("{} is a run directory, not a checkpoint", path),
      "without --recipe the run itself goes on; with it give one of its checkpoints/step-N");
}

void say_what_happens(const resume::Continuation& continuation) {
  for (const auto& note : continuation.notes) say("note: " + note);
  for (const auto& difference : continuation.differences)
    say("changed: " + resume::to_string(difference));
  for (const auto& fresh : continuation.fresh) say("starts anew: " + fresh);
}

}  // namespace

Result<ExitCode> resume_checkpoint(const ResumeArguments& arguments) {
  PTRAIN_CHECK(refuse_run(arguments.from));
  std::vector<std::string> overrides = arguments.overrides;
  overrides.insert(overrides.end(), arguments.slurm.begin(), arguments.slurm.end());
  PTRAIN_TRY(const auto loaded, recipe::read_recipe(arguments.recipe, overrides));
  PTRAIN_TRY(const auto checkpoint, resume::StoredCheckpoint::open(arguments.from));
  PTRAIN_TRY(const auto continuation, resume::continue_from(checkpoint, loaded.recipe));
  say_what_happens(continuation);
  PTRAIN_CHECK(resume::permit(continuation, loaded.recipe, arguments.allow_changes));
  PTRAIN_CHECK(check_run_path(arguments.directory, loaded.recipe.name));
  if (is_submitted(loaded.recipe.cluster)) {
    RunArguments run;
    run.recipe = arguments.recipe;
    run.directory = arguments.directory;
    run.detach = arguments.detach;
    return submit_run(run, loaded, continuation.origin);
  }
  PTRAIN_CHECK(check_started_here(arguments.slurm, arguments.detach, loaded.recipe.cluster));
  PTRAIN_TRY(plan::Planning planning, make_planning(loaded, ""));
  for (const auto& note : planning.notes) say("note: " + note);
  planning.plan.origin = continuation.origin;
  PTRAIN_TRY(const auto backend, check_start(planning.plan));
  supervise::StopSignals signals;
  PTRAIN_TRY(const run::Directory directory, write_run(arguments.directory, loaded, planning.plan));
  PTRAIN_TRY(const auto lock, supervise::RunLock::take(directory));
  say(fmt::format("ptrain: {} continues step {} of {}", directory.root, continuation.origin.step,
                  checkpoint.folder()));
  return start_run({directory, planning.plan, *backend}, lock, signals);
}

}  // namespace ptrain::cli
