#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/planning.h"
#include "cli/resume_checkpoint.h"
#include "cli/run_progress.h"
#include "cli/start_run.h"
#include "cli/submit_run.h"
#include "core/recipe/shapes.h"
#include "launcher/base/file.h"
#include "launcher/base/plan_file.h"
#include "launcher/parity/parity.h"
#include "launcher/resume/differences.h"
#include "launcher/submit/job_file.h"
#include "launcher/submit/job_state.h"
#include "launcher/submit/rank_map.h"
#include "launcher/supervise/event_log.h"
#include "launcher/supervise/narrate.h"
#include "launcher/supervise/run_folder.h"

namespace ptrain::cli {

namespace {

Status refuse_checkpoint(const std::string& path) {
  if (!is_regular_file(absolute_path(path) + "/.metadata")) return {};
  return fail(ExitCode::kUsage, fmt::format("{} is a checkpoint, not a run directory", path),
              "add --recipe FILE to begin a new run from it");
}

Status refuse_parity(const run::Directory& directory) {
  if (!parity::is_parity_run(directory)) return {};
  return fail(ExitCode::kUsage,
              fmt::format("{} is a parity run: it trained nothing to go on with", directory.root),
              "`ptrain run RECIPE` trains, `ptrain run RECIPE --parity` compares again");
}

using Planner = std::function<Result<plan::Planning>(const recipe::LoadedRecipe&)>;

std::vector<std::string> all_overrides(const ResumeArguments& arguments) {
  std::vector<std::string> all = arguments.overrides;
  all.insert(all.end(), arguments.slurm.begin(), arguments.slurm.end());
  return all;
}

// Of these only Slurm takes notice.
bool is_for_slurm(std::string_view field) {
  for (const char* section :
       {"cluster.slurm.account", "cluster.slurm.qos", "cluster.slurm.time", "cluster.slurm.comment",
        "cluster.slurm.array", "cluster.slurm.extra", "cluster.setup", "cluster.env",
        "cluster.container", "cluster.launcher", "cluster.local_copy"})
    if (field.starts_with(section)) return true;
  return false;
}

// Whether any difference is one that the plan rests on: then layouts are chosen again, else they
// stay as they are and the run stays exact to the bit.
bool needs_plan(const std::vector<resume::Difference>& differences) {
  return std::any_of(differences.begin(), differences.end(), [](const auto& difference) {
    for (const char* section : {"parallel", "cluster", "shapes", "precision"})
      if (difference.field.starts_with(section)) return !is_for_slurm(difference.field);
    return false;
  });
}

Result<run::Plan> plan_again(const run::Plan& plan, const recipe::Recipe& recipe,
                             const Planner& planner) {
  const recipe::LoadedRecipe loaded{recipe, plan.recipe_folder, "", plan.recipe_hash, {}};
  PTRAIN_TRY(plan::Planning planning, planner(loaded));
  for (const auto& note : planning.notes) say("note: " + note);
  planning.plan.origin = plan.origin;
  return std::move(planning.plan);
}

// The plan with the overrides.
Result<run::Plan> changed_plan(const run::Plan& plan, const ResumeArguments& arguments,
                               const Planner& planner) {
  PTRAIN_TRY(const auto recipe, recipe::override_recipe(plan.recipe, all_overrides(arguments)));
  const auto differences = resume::differences(plan.recipe, recipe);
  for (const auto& difference : differences) say("changed: " + resume::to_string(difference));
  PTRAIN_CHECK(resume::permit(differences, arguments.allow_changes));
  if (differences.empty()) return plan;
  run::Plan changed = plan;
  if (needs_plan(differences)) {
    PTRAIN_TRY(changed, plan_again(plan, recipe, planner));
  }
  changed.recipe = recipe;
  changed.recipe_hash = recipe::identity_of(recipe);
  return changed;
}

// A plan in place of the run's `own`, once nothing refuses it; the folder of each attempt keeps the
// one that it ran on.
Status keep_plan(const run::Directory& directory, const run::Plan& own, const run::Plan& plan) {
  if (plan == own) return {};
  PTRAIN_CHECK(write_plan(directory.plan(), plan));
  supervise::EventLog log(directory);
  return log.write(run::EventKind::kPlanChosen, -1, {{"layouts", supervise::layouts_text(plan)}});
}

Status check_not_beyond(const run::Plan& plan, std::int64_t step) {
  const std::int64_t last = recipe::total_steps(plan.recipe);
  if (step <= last) return {};
  return fail(ExitCode::kUsage,
              fmt::format("{} steps are done already, but the changed recipe has {}", step, last),
              "give the shapes more steps, or start a new run with `ptrain run`");
}

// What somebody has written into the run's recipe.yaml since would else be passed over in silence.
void note_changed_recipe(const run::Directory& directory) {
  const auto events = supervise::read_events(directory.events());
  const auto now = hash_of_file(directory.recipe());
  if (!events || events->empty() || !now) return;
  const auto& fields = events->front().fields;
  const auto written = fields.find("recipe_text");
  if (written == fields.end() || *written == *now) return;
  say(
      fmt::format("note: {} was changed since the run began, and is not what is trained: give "
                  "changes behind `ptrain resume {}`, such as shapes.0.steps=20",
                  directory.recipe(), directory.root));
}

void say_start(const run::Directory& directory, const run::Plan& plan, std::int64_t step) {
  std::string from = step < 0 ? plan.origin.checkpoint : directory.checkpoint(step);
  if (from.empty()) from = "the beginning, since there is no checkpoint yet";
  say(fmt::format("ptrain: continuing from {}, by the run's own {}", from, directory.plan()));
}

// The plan by which the run goes on, after its `own`; none: it is finished. The caller holds the
// run's lock.
Result<std::optional<run::Plan>> plan_to_go_on(const run::Directory& directory,
                                               const run::Plan& own,
                                               const ResumeArguments& arguments,
                                               const Planner& planner) {
  run::Plan plan = own;
  const std::int64_t step = supervise::newest_step(directory);
  if (step < 0) PTRAIN_CHECK(check_not_lost(directory));
  note_changed_recipe(directory);
  if (!all_overrides(arguments).empty()) {
    PTRAIN_TRY(plan, changed_plan(plan, arguments, planner));
    PTRAIN_CHECK(check_not_beyond(plan, step));
  }
  if (is_finished(directory, plan)) {
    say(fmt::format("ptrain: {} is finished: all of its {} steps are done", directory.root, step));
    return std::optional<run::Plan>();
  }
  say_start(directory, plan, step);
  return std::optional(std::move(plan));
}

Result<ExitCode> resume_here(const ResumeArguments& arguments, const run::Directory& directory) {
  const Planner planner = [](const auto& loaded) { return make_planning(loaded, ""); };
  PTRAIN_TRY(const auto lock, supervise::RunLock::take(directory));
  PTRAIN_TRY(const run::Plan own, read_plan(directory.plan()));
  PTRAIN_TRY(const auto plan, plan_to_go_on(directory, own, arguments, planner));
  if (!plan) return ExitCode::kDone;
  supervise::StopSignals signals;
  PTRAIN_TRY(const auto backend, check_start(*plan));
  PTRAIN_CHECK(keep_plan(directory, own, *plan));
  return start_run({directory, *plan, *backend}, lock, signals);
}

// Two jobs of one run would wait for each other.
Status check_no_job(const run::Directory& directory) {
  if (!submit::has_job(directory)) return {};
  PTRAIN_TRY(const submit::JobFile file, submit::read_job(directory));
  const submit::JobState state = submit::look_up(file.job);
  if (submit::is_over(state)) return {};
  return fail(ExitCode::kUsage,
              fmt::format("job {} of this run {}", name_of(file.job, state), in_words(state)),
              "follow it with `ptrain logs --follow`, or end it with `ptrain stop`");
}

// The plan for the nodes of the job, which may be others than before.
Result<std::optional<run::Plan>> plan_in_job(const run::Directory& directory,
                                             const ResumeArguments& arguments,
                                             const submit::LoginNode& seen,
                                             const recipe::Slurm& slurm) {
  const Planner planner = [&](const auto& loaded) { return plan_job(loaded, seen); };
  PTRAIN_TRY(const auto lock, supervise::RunLock::take(directory));  // until the job needs it
  PTRAIN_TRY(const run::Plan own, read_plan(directory.plan()));
  PTRAIN_TRY(auto plan, plan_to_go_on(directory, own, arguments, planner));
  if (!plan) return plan;
  if (run::num_nodes(*plan) != std::max(1, slurm.nodes)) {
    PTRAIN_TRY(plan, plan_again(*plan, plan->recipe, planner));
  }
  PTRAIN_CHECK(submit::check_gpus(*plan, slurm.gpus_per_node));
  PTRAIN_CHECK(keep_plan(directory, own, *plan));
  return plan;
}

Result<ExitCode> resume_in_job(const ResumeArguments& arguments, const run::Directory& directory,
                               const recipe::Recipe& recipe) {
  PTRAIN_CHECK(check_no_job(directory));
  PTRAIN_TRY(submit::Job job, job_for(directory.root, recipe));
  PTRAIN_TRY(const submit::LoginNode seen, look_around(job));
  supervise::StopSignals signals;
  PTRAIN_TRY(const auto plan, plan_in_job(directory, arguments, seen, recipe.cluster.slurm));
  if (!plan) return ExitCode::kDone;
  job.ranks_per_node = submit::ranks_per_node(*plan);
  const auto earlier = submit::read_job(directory);
  return hand_over({job, earlier ? earlier->recipe : directory.recipe(), arguments.detach}, seen,
                   signals);
}

Result<ExitCode> resume_run(const ResumeArguments& arguments) {
  PTRAIN_CHECK(refuse_checkpoint(arguments.from));
  PTRAIN_TRY(const run::Directory directory, supervise::open_run(arguments.from));
  PTRAIN_CHECK(refuse_parity(directory));
  // Where it goes on is known before the lock is taken, what it goes on with only then.
  PTRAIN_TRY(const run::Plan plan, read_plan(directory.plan()));
  recipe::Recipe recipe = plan.recipe;
  if (const auto overrides = all_overrides(arguments); !overrides.empty()) {
    PTRAIN_TRY(recipe, recipe::override_recipe(recipe, overrides));
  }
  if (is_submitted(recipe.cluster)) return resume_in_job(arguments, directory, recipe);
  PTRAIN_CHECK(check_started_here(arguments.slurm, arguments.detach, recipe.cluster));
  return resume_here(arguments, directory);
}

}  // namespace

Result<ExitCode> cmd_resume(const ResumeArguments& arguments) {
  return arguments.recipe.empty() ? resume_run(arguments) : resume_checkpoint(arguments);
}

}  // namespace ptrain::cli
