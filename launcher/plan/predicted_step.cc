#include "launcher/plan/predicted_step.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/mesh/buffer_plan.h"
#include "core/model/optimizer.h"
#include "core/program/compile.h"
#include "launcher/plan/cost/action_cost.h"
#include "launcher/plan/cost/attention_load.h"

namespace ptrain::plan {

Result<PredictedStep> predicted_step(const PlanInput& input, const run::ShapePlan& shape) {
  const auto wanted = std::ranges::find(input.recipe.shapes, shape.name, &recipe::Shape::name);
  if (wanted == input.recipe.shapes.end())
    return fail(ExitCode::kUsage, fmt::format("the recipe has no shape '{}'", shape.name));
  std::vector<std::string> told_before;
  PTRAIN_TRY(const auto architecture, model::make_architecture(input.recipe));
  PTRAIN_TRY(const auto placement, place_ranks(input.recipe, input.cluster, told_before));
  PredictedStep out;
  PTRAIN_TRY(out.program, program::compile({architecture, shape.layout, shape.name}, 0));
  const auto buffers = mesh::plan_buffers(architecture, shape.layout.shard);
  const CostContext context{
      architecture,
      shape.layout,
      buffers,
      input.cluster.figures,
      input.cluster.link,
      placement,
      wanted->sequence,
      packed_attention_load(wanted->sequence, input.lengths, input.recipe.data.packing,
                            input.cluster.figures.attention.block_rows),
      mesh::fullest_rank(buffers)};
  SimulateOptions options;
  options.serial = !placement.overlaps;
  options.seconds = [&](const program::Action& action, int) {
    return action_seconds(action, context);
  };
  PTRAIN_TRY(Timeline timeline, simulate(std::span(&out.program, 1), options));
  out.timeline = std::move(timeline.ranks.front());
  return out;
}

}  // namespace ptrain::plan
