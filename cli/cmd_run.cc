#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/engine_module.h"
#include "cli/output.h"
#include "cli/planning.h"
#include "cli/run_parity.h"
#include "cli/seats.h"
#include "cli/start_run.h"
#include "cli/submit_run.h"
#include "launcher/recipe/hf_folder.h"

namespace ptrain::cli {

namespace {

Result<run::Plan> plan_of(const RunArguments& arguments, const recipe::LoadedRecipe& loaded) {
  if (!arguments.plan.empty()) return given_plan(arguments.plan, loaded);
  PTRAIN_TRY(plan::Planning planning, make_planning(loaded, ""));
  for (const auto& note : planning.notes) say("note: " + note);
  return std::move(planning.plan);
}

Result<recipe::LoadedRecipe> load(const RunArguments& arguments) {
  std::vector<std::string> all = arguments.overrides;
  all.insert(all.end(), arguments.slurm.begin(), arguments.slurm.end());
  return recipe::read_recipe(arguments.recipe, all);
}

// Before anything is written: weights that do not fit would be found by the ranks.
Status check_model_folder(const recipe::LoadedRecipe& loaded) {
  PTRAIN_TRY(const auto notes, recipe::check_weights(loaded.recipe));
  for (const auto& note : notes) say("note: " + note);
  return {};
}

}  // namespace

Result<ExitCode> cmd_run(const RunArguments& arguments) {
  PTRAIN_TRY(const auto loaded, load(arguments));
  PTRAIN_CHECK(check_run_path(arguments.directory, loaded.recipe.name));
  PTRAIN_CHECK(check_model_folder(loaded));
  if (is_submitted(loaded.recipe.cluster) && !arguments.parity)
    return submit_run(arguments, loaded);
  PTRAIN_CHECK(check_started_here(
      arguments.slurm, arguments.detach, loaded.recipe.cluster,
      arguments.parity ? "--parity compares where it is called" : why_not_submitted()));
  PTRAIN_TRY(const run::Plan plan, plan_of(arguments, loaded));
  if (arguments.dry_run) {
    const std::string path = new_run_path(arguments.directory, plan.recipe.name);
    PTRAIN_TRY(const std::string command, start_command({path}, plan));
    print(run::to_json(plan).dump(1) + "\n");
    if (run::num_nodes(plan) > 1 || engine_of(plan) == EngineKind::kGpu)
      print(escaped(seat_map(plan)));
    print_line(command);
    return ExitCode::kDone;
  }
  if (arguments.parity) return run_parity(arguments, loaded, plan);
  PTRAIN_TRY(const auto backend, check_start(plan));
  supervise::StopSignals signals;
  PTRAIN_TRY(const run::Directory directory, write_run(arguments.directory, loaded, plan));
  PTRAIN_TRY(const auto lock, supervise::RunLock::take(directory));
  return start_run({directory, plan, *backend}, lock, signals);
}

}  // namespace ptrain::cli
