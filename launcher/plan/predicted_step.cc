#include "launcher/plan/predicted_step.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/model/optimizer.h"
#include "launcher/plan/cost/attention_load.h"
#include "launcher/plan/parts.h"

namespace ptrain::plan {

Result<PredictedStep> predicted_step(const PlanInput& input, const run::ShapePlan& shape) {
  const auto wanted = std::ranges::find(input.recipe.shapes, shape.name, &recipe::Shape::name);
  if (wanted == input.recipe.shapes.end())
    return fail(ExitCode::kUsage, fmt::format("the recipe has no shape '{}'", shape.name));
  std::vector<std::string> told_before;
  PTRAIN_TRY(const auto whole, model::make_architecture(input.recipe));
  PTRAIN_TRY(const auto parts, parts_of(whole, shape.layout));
  PTRAIN_TRY(const auto placement, place_ranks(input.recipe, input.cluster, told_before));
  PTRAIN_TRY(auto programs, compile_parts(parts, shape.layout, shape.name));
  const AttentionLoad attention =
      packed_attention_load(wanted->sequence, input.lengths, input.recipe.data.packing,
                            input.cluster.figures.attention.block_rows);
  PTRAIN_TRY(Timeline timeline, run_on_clock({parts, shape.layout, input.cluster, placement,
                                              wanted->sequence, attention},
                                             programs));
  PredictedStep out;
  out.program = std::move(programs.front());
  out.timeline = std::move(timeline.ranks.front());
  return out;
}

}  // namespace ptrain::plan
