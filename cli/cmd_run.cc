#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/engine_module.h"
#include "cli/output.h"
#include "cli/planning.h"
#include "cli/start_run.h"
#include "core/run/build_id.h"
#include "launcher/base/file.h"
#include "launcher/base/plan_file.h"
#include "launcher/start/mpirun.h"
#include "launcher/supervise/event_log.h"
#include "launcher/supervise/run_folder.h"

namespace ptrain::cli {

namespace {

// runs/NAME/TIME: local time, so that a person finds the run again.
std::string directory_of(const RunArguments& arguments, const std::string& name) {
  if (!arguments.directory.empty()) return absolute_path(arguments.directory);
  const auto now = fmt::localtime(std::chrono::system_clock::to_time_t(
      std::chrono::system_clock::now()));
  return absolute_path(fmt::format("runs/{}/{:%Y%m%d-%H%M%S}", name, now));
}

Result<run::Plan> given_plan(const RunArguments& arguments, const recipe::LoadedRecipe& loaded) {
  PTRAIN_TRY(run::Plan plan, read_plan(arguments.plan));
  if (plan.recipe_hash != loaded.hash)
    return fail(ExitCode::kUsage,
                fmt::format("the plan {} was made for another recipe or other overrides",
                            arguments.plan),
                "make it again with `ptrain plan`, or leave --plan out");
  if (plan.shapes.empty())
    return fail(ExitCode::kUsage, fmt::format("the plan {} has no shapes", arguments.plan));
  plan.build = run::build_id();
  return plan;
}

Result<run::Plan> plan_of(const RunArguments& arguments, const recipe::LoadedRecipe& loaded) {
  if (!arguments.plan.empty()) return given_plan(arguments, loaded);
  PTRAIN_TRY(plan::Planning planning, make_planning(loaded, ""));
  for (const auto& note : planning.notes) say("note: " + note);
  return std::move(planning.plan);
}

std::string layouts_text(const run::Plan& plan) {
  std::string text;
  for (const auto& shape : plan.shapes)
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", shape.name,
                        mesh::to_string(shape.layout));
  return text;
}

Result<run::Directory> write_run(const std::string& path, const recipe::LoadedRecipe& loaded,
                                 const run::Plan& plan) {
  PTRAIN_TRY(const run::Directory directory, supervise::create_run(path));
  PTRAIN_CHECK(publish_file(directory.recipe(), loaded.text));
  PTRAIN_CHECK(write_plan(directory.plan(), plan));
  supervise::EventLog log(directory);
  PTRAIN_CHECK(log.write(run::EventKind::kRunCreated, -1, {{"recipe_hash", loaded.hash}}));
  PTRAIN_CHECK(log.write(run::EventKind::kPlanChosen, -1, {{"layouts", layouts_text(plan)}}));
  return directory;
}

}  // namespace

Result<ExitCode> cmd_run(const RunArguments& arguments) {
  PTRAIN_TRY(const auto loaded, recipe::read_recipe(arguments.recipe, arguments.overrides));
  PTRAIN_TRY(const run::Plan plan, plan_of(arguments, loaded));
  const std::string path = directory_of(arguments, plan.recipe.name);
  if (arguments.dry_run) {
    PTRAIN_TRY(const std::string command, start_command({path}, plan));
    print(run::to_json(plan).dump(1) + "\n");
    print_line(command);
    return ExitCode::kDone;
  }
  PTRAIN_CHECK(start::Mpirun::find());  // before anything is written
  PTRAIN_CHECK(find_engine());
  PTRAIN_TRY(const run::Directory directory, write_run(path, loaded, plan));
  say(fmt::format("ptrain: {} ({})", directory.root, layouts_text(plan)));
  return start_run(directory, plan);
}

}  // namespace ptrain::cli
