#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/planning.h"
#include "cli/run_parity.h"
#include "cli/start_run.h"
#include "core/run/build_id.h"
#include "launcher/base/plan_file.h"
#include "launcher/recipe/hf_folder.h"

namespace ptrain::cli {

namespace {

Result<run::Plan> given_plan(const RunArguments& arguments, const recipe::LoadedRecipe& loaded) {
  PTRAIN_TRY(run::Plan plan, read_plan(arguments.plan));
  if (plan.recipe_hash != loaded.hash)
    return fail(
        ExitCode::kUsage,
        fmt::format("the plan {} was made for another recipe or other overrides", arguments.plan),
        "give the plan.json of a run of this recipe, or leave --plan out");
  plan.build = run::build_id();
  return plan;
}

Result<run::Plan> plan_of(const RunArguments& arguments, const recipe::LoadedRecipe& loaded) {
  if (!arguments.plan.empty()) return given_plan(arguments, loaded);
  PTRAIN_TRY(plan::Planning planning, make_planning(loaded, ""));
  for (const auto& note : planning.notes) say("note: " + note);
  return std::move(planning.plan);
}

// Before anything is written: weights that do not fit would be found by the ranks.
Status check_model_folder(const recipe::LoadedRecipe& loaded) {
  PTRAIN_TRY(const auto notes, recipe::check_weights(loaded.recipe));
  for (const auto& note : notes) say("note: " + note);
  return {};
}

}  // namespace

Result<ExitCode> cmd_run(const RunArguments& arguments) {
  PTRAIN_TRY(const auto loaded, recipe::read_recipe(arguments.recipe, arguments.overrides));
  PTRAIN_CHECK(check_model_folder(loaded));
  PTRAIN_TRY(const run::Plan plan, plan_of(arguments, loaded));
  if (arguments.dry_run) {
    const std::string path = new_run_path(arguments.directory, plan.recipe.name);
    PTRAIN_TRY(const std::string command, start_command({path}, plan));
    print(run::to_json(plan).dump(1) + "\n");
    print_line(command);
    return ExitCode::kDone;
  }
  if (arguments.parity) return run_parity(arguments, loaded, plan);
  PTRAIN_CHECK(check_start(plan));
  supervise::StopSignals signals;
  PTRAIN_TRY(const run::Directory directory, write_run(arguments.directory, loaded, plan));
  PTRAIN_TRY(const auto lock, supervise::RunLock::take(directory));
  return start_run(directory, plan, lock, signals);
}

}  // namespace ptrain::cli
