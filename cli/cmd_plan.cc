#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/planning.h"
#include "core/mesh/part.h"
#include "core/model/optimizer.h"
#include "core/program/compile.h"
#include "launcher/plan/report.h"

namespace ptrain::cli {

namespace {

// The chosen programs of one rank, one after another; each starts with its header line.
Result<std::string> programs_text(const run::Plan& plan, int rank) {
  const int num_ranks = static_cast<int>(plan.ranks.size());
  if (rank >= num_ranks)
    return fail(ExitCode::kUsage,
                fmt::format("--program {}: the plan has {} ranks", rank, num_ranks),
                fmt::format("give a rank from 0 to {}", num_ranks - 1));
  PTRAIN_TRY(const auto architecture, model::make_architecture(plan.recipe));
  std::string text;
  for (const run::ShapePlan& shape : plan.shapes) {
    PTRAIN_TRY(const auto part, mesh::part_of(architecture, shape.layout, rank));
    PTRAIN_TRY(const auto program, program::compile({part, shape.layout, shape.name}, rank));
    text += program::to_text(program);
  }
  return text;
}

}  // namespace

Result<ExitCode> cmd_plan(const PlanArguments& arguments) {
  PTRAIN_TRY(const auto loaded, recipe::read_recipe(arguments.recipe, arguments.overrides));
  PTRAIN_TRY(const plan::Planning planning,
             make_planning(loaded, arguments.cluster, arguments.probe));
  if (arguments.program_rank >= 0) {
    PTRAIN_TRY(const auto text, programs_text(planning.plan, arguments.program_rank));
    print(text);
  } else if (arguments.json) {
    print(plan::to_json(planning).dump(2) + "\n");
  } else {
    print(plan::to_text(planning, arguments.explain));
  }
  if (arguments.program_rank >= 0 || arguments.json)
    for (const auto& note : planning.notes) fmt::print(stderr, "note: {}\n", note);
  return ExitCode::kDone;
}

}  // namespace ptrain::cli
