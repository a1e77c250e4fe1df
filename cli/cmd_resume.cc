#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/planning.h"
#include "cli/resume_checkpoint.h"
#include "cli/run_progress.h"
#include "cli/start_run.h"
#include "core/recipe/json.h"
#include "core/recipe/shapes.h"
#include "launcher/base/file.h"
#include "launcher/base/plan_file.h"
#include "launcher/resume/differences.h"
#include "launcher/supervise/event_log.h"

namespace ptrain::cli {

namespace {

Status refuse_checkpoint(const std::string& path) {
  if (!is_regular_file(absolute_path(path) + "/.metadata")) return {};
  return fail(ExitCode::kUsage, fmt::format("{} is a checkpoint, not a run directory", path),
              "add --recipe FILE to begin a new run from it");
}

// Whether any difference is one that the plan rests on: then layouts are chosen again, else they
// stay as they are and the run stays exact to the bit.
bool needs_plan(const std::vector<resume::Difference>& differences) {
  return std::any_of(differences.begin(), differences.end(), [](const auto& difference) {
    for (const char* section : {"parallel", "cluster", "shapes", "precision"})
      if (difference.field.starts_with(section)) return true;
    return false;
  });
}

Result<run::Plan> plan_again(const run::Plan& plan, const recipe::Recipe& recipe) {
  const recipe::LoadedRecipe loaded{recipe, plan.recipe_folder, "", plan.recipe_hash, {}};
  PTRAIN_TRY(plan::Planning planning, make_planning(loaded, ""));
  for (const auto& note : planning.notes) say("note: " + note);
  planning.plan.origin = plan.origin;
  return std::move(planning.plan);
}

// The plan with the overrides, in place of the run's own; the folder of each attempt keeps the one
// that it ran on.
Result<run::Plan> changed_plan(const run::Directory& directory, const run::Plan& plan,
                               const ResumeArguments& arguments) {
  PTRAIN_TRY(const auto recipe, recipe::override_recipe(plan.recipe, arguments.overrides));
  const auto differences =
      resume::differences(recipe::to_json(plan.recipe), recipe::to_json(recipe));
  for (const auto& difference : differences) say("changed: " + resume::to_string(difference));
  PTRAIN_CHECK(resume::permit(differences, arguments.allow_changes));
  if (differences.empty()) return plan;
  run::Plan changed = plan;
  if (needs_plan(differences)) {
    PTRAIN_TRY(changed, plan_again(plan, recipe));
  }
  changed.recipe = recipe;
  changed.recipe_hash = recipe::identity_of(plan.recipe_hash, arguments.overrides);
  PTRAIN_CHECK(write_plan(directory.plan(), changed));
  supervise::EventLog log(directory);
  PTRAIN_CHECK(log.write(run::EventKind::kPlanChosen, -1, {{"layouts", layouts_text(changed)}}));
  return changed;
}

Status check_not_beyond(const run::Plan& plan, std::int64_t step) {
  const std::int64_t last = recipe::total_steps(plan.recipe);
  if (step <= last) return {};
  return fail(ExitCode::kUsage,
              fmt::format("{} steps are done already, but the changed recipe has {}", step, last),
              "give the shapes more steps, or start a new run with `ptrain run`");
}

void say_start(const run::Directory& directory, const run::Plan& plan, std::int64_t step) {
  std::string from = step < 0 ? plan.origin.checkpoint : directory.checkpoint(step);
  if (from.empty()) from = "the beginning, since there is no checkpoint yet";
  say(fmt::format("ptrain: continuing from {}, by the run's own {}", from, directory.recipe()));
}

Result<ExitCode> resume_run(const ResumeArguments& arguments) {
  PTRAIN_CHECK(refuse_checkpoint(arguments.from));
  PTRAIN_TRY(const run::Directory directory, supervise::open_run(arguments.from));
  PTRAIN_TRY(const auto lock, supervise::RunLock::take(directory));
  PTRAIN_TRY(run::Plan plan, read_plan(directory.plan()));
  const std::int64_t step = newest_step(directory);
  if (step < 0) PTRAIN_CHECK(check_not_lost(directory));
  if (!arguments.overrides.empty()) {
    PTRAIN_TRY(plan, changed_plan(directory, plan, arguments));
    PTRAIN_CHECK(check_not_beyond(plan, step));
  }
  if (is_finished(directory, plan)) {
    say(fmt::format("ptrain: {} is finished: all of its {} steps are done", directory.root, step));
    return ExitCode::kDone;
  }
  say_start(directory, plan, step);
  supervise::StopSignals signals;
  return start_run(directory, plan, lock, signals);
}

}  // namespace

Result<ExitCode> cmd_resume(const ResumeArguments& arguments) {
  return arguments.recipe.empty() ? resume_run(arguments) : resume_checkpoint(arguments);
}

}  // namespace ptrain::cli
