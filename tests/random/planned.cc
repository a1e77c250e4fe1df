#include "tests/random/planned.h"

#include <utility>

#include "tests/random/experiment.h"

namespace ptrain::random {
namespace {

recipe::Parallel parallel_of(const Case& one) {
  const auto degree = [](std::int64_t value) { return static_cast<int>(value); };
  recipe::Parallel parallel;
  parallel.automatic = false;
  parallel.dp = degree(one.dp);
  parallel.shard = degree(one.shard);
  if (one.shard * one.ring * one.ulysses > 1) parallel.zero = degree(one.zero);
  parallel.ring = degree(one.ring);
  parallel.ulysses = degree(one.ulysses);
  parallel.tp = degree(one.tp);
  parallel.ep = degree(one.ep);
  parallel.etp = degree(one.etp);
  parallel.pp = degree(one.pp);
  if (one.pp > 1) {
    parallel.num_virtual = degree(one.num_virtual);
    parallel.schedule = one.schedule;
    parallel.stages = one.stages;
    if (one.spread_embedding != 0) parallel.embedding = recipe::Embedding::kAllStages;
    if (one.spread_head != 0) parallel.head = recipe::Head::kAllStages;
  }
  parallel.micro_batch = one.micro_batch;
  parallel.stage_recompute = one.stage_recompute;
  parallel.stage_dtype = one.stage_dtype;
  if (one.stage_recompute.empty()) parallel.recompute = recipe::recompute_named(one.recompute);
  parallel.prefetch = degree(one.prefetch);
  parallel.offload =
      one.offload == "optimizer" ? recipe::Offload::kOptimizer : recipe::Offload::kNone;
  return parallel;
}

recipe::Recipe recipe_of(const Case& one) {
  recipe::Recipe recipe;
  recipe.name = "random";
  recipe.model = model_of(one);
  recipe.optimizer = optimizer_of(one);
  recipe.precision =
      one.precision == "fp64" ? recipe::Precision::kFloat64 : recipe::Precision::kFloat32;
  recipe::Shape shape;
  shape.name = "only";
  shape.sequence = one.sequence;
  shape.global_batch_tokens = one.sequence * one.rows;
  shape.steps = one.steps;
  recipe.shapes = {shape};
  recipe.parallel = parallel_of(one);
  recipe.cluster.ranks_per_node = static_cast<int>(one.num_ranks());
  return recipe;
}

}  // namespace

Result<plan::Planning> planned(const Case& one, std::map<std::string, std::string> files) {
  plan::PlanInput input;
  input.recipe = recipe_of(one);
  input.cluster.name = "one";
  input.cluster.nodes = {{.name = "node", .num_cores = 64, .memory_bytes = std::int64_t{1} << 38}};
  input.cluster.figures = cluster::default_figures();
  input.cluster.link = cluster::default_link();
  input.schedules = std::move(files);
  return plan::plan_recipe(input);
}

}  // namespace ptrain::random
