#include "launcher/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/divide.h"
#include "core/mesh/part.h"
#include "core/model/optimizer.h"
#include "core/program/offload_plan.h"
#include "launcher/plan/degrees.h"
#include "launcher/plan/evaluate.h"
#include "launcher/plan/explain.h"

namespace ptrain::plan {

namespace {

Status check_shape(const recipe::Shape& shape) {
  if (shape.sequence > 0 && shape.global_batch_tokens >= shape.sequence &&
      shape.global_batch_tokens % shape.sequence == 0)
    return {};
  return fail(
      ExitCode::kUsage,
      fmt::format("shape '{}': global_batch_tokens ({}) is not a whole number of rows of {} tokens",
                  shape.name, shape.global_batch_tokens, shape.sequence),
      "make it a multiple of sequence");
}

bool rows_divide(const recipe::Recipe& recipe, int num_ranks) {
  return std::all_of(recipe.shapes.begin(), recipe.shapes.end(), [&](const recipe::Shape& shape) {
    const recipe::Parallel& fixed = parallel_of(recipe, shape);
    const int sharers = fixed_sharers(fixed);
    const int least = sharers * std::max(1, fixed.dp) * std::max(1, fixed.shard);
    const std::int64_t rows = shape.global_batch_tokens / shape.sequence;
    return num_ranks % least == 0 && num_ranks % fixed_expert_ranks(fixed) == 0 &&
           rows % (num_ranks / sharers) == 0;
  });
}

// The world size that the recipe fixes by its degrees; 0: it does not.
int fixed_ranks(const recipe::Recipe& recipe) {
  for (const auto& shape : recipe.shapes) {
    const auto& fixed = parallel_of(recipe, shape);
    if (fixed.dp > 0 && fixed.shard > 0) return fixed.dp * fixed.shard * fixed_sharers(fixed);
  }
  return 0;
}

// That the degrees which the recipe fixes ask for.
int least_ranks(const recipe::Parallel& fixed) {
  const std::int64_t experts = std::min<std::int64_t>(fixed_expert_ranks(fixed), 1 << 20);
  return std::max(fixed_sharers(fixed), static_cast<int>(experts));
}

Result<int> choose_ranks_per_node(const recipe::Recipe& recipe, int num_nodes, int cores) {
  if (recipe.cluster.ranks_per_node > 0) return recipe.cluster.ranks_per_node;
  if (const int fixed = fixed_ranks(recipe); fixed > 0) {
    if (fixed % num_nodes == 0) return fixed / num_nodes;
    return fail(ExitCode::kUsage,
                fmt::format("dp x shard = {} ranks do not divide over {} nodes", fixed, num_nodes),
                "change parallel.dp, parallel.shard or cluster.slurm.nodes");
  }
  int most = cores;  // but for what the recipe needs
  for (const auto& shape : recipe.shapes)
    most = std::max(most, divide_up(least_ranks(parallel_of(recipe, shape)), num_nodes));
  for (int ranks = most; ranks > 1; --ranks)
    if (rows_divide(recipe, ranks * num_nodes)) return ranks;
  return 1;
}

// That every node has.
Result<int> gpus_a_node(const cluster::Cluster& cluster, std::size_t num_nodes) {
  const auto [least, most] = std::minmax_element(
      cluster.nodes.begin(), cluster.nodes.begin() + static_cast<std::ptrdiff_t>(num_nodes),
      [](const auto& a, const auto& b) { return a.num_gpus < b.num_gpus; });
  if (least->num_gpus > 0 || most->num_gpus == 0) return least->num_gpus;
  return fail(ExitCode::kUsage,
              fmt::format("node {} has GPUs and node {} has none", most->name, least->name),
              "run on nodes of one kind: lower cluster.slurm.nodes or give another cluster file");
}

Result<Placement> place_on_gpus(const recipe::Recipe& recipe, int num_nodes, int gpus,
                                std::vector<std::string>& notes) {
  Placement out;
  out.on_gpus = true;
  PTRAIN_TRY(out.ranks_per_node, choose_ranks_per_node(recipe, num_nodes, gpus));
  if (out.ranks_per_node > gpus)
    return fail(ExitCode::kUsage,
                fmt::format("{} ranks a node, but a node has {} GPUs, one a rank",
                            out.ranks_per_node, gpus),
                "lower cluster.ranks_per_node, or parallel.dp and parallel.shard");
  out.num_ranks = out.ranks_per_node * num_nodes;
  if (recipe.cluster.ranks_per_node == 0 && out.ranks_per_node < gpus)
    notes.push_back(
        fmt::format("{} ranks a node on {} GPUs: more would not divide the rows of "
                    "every shape, or the recipe fixes dp and shard",
                    out.ranks_per_node, gpus));
  return out;
}

std::vector<run::RankPlace> places(const cluster::Cluster& cluster, const Placement& placement) {
  std::vector<run::RankPlace> out;
  for (int rank = 0; rank < placement.num_ranks; ++rank) {
    const int node = rank / placement.ranks_per_node;
    const int slot = rank % placement.ranks_per_node;
    out.push_back({rank, cluster.nodes[static_cast<std::size_t>(node)].name, slot,
                   placement.on_gpus ? slot : -1});
  }
  return out;
}

Result<run::ShapePlan> shape_plan(const SearchInput& input, const Ranking& ranking) {
  if (ranking.ranked.empty()) return tl::unexpected(nothing_fits(input, ranking));
  const Candidate& best = ranking.ranked.front();
  run::ShapePlan plan;
  plan.name = ranking.shape;
  plan.layout = best.layout;
  plan.threads = input.placement.threads;
  plan.predicted = best.predicted;
  plan.rejected = summarize(ranking.rejected);
  PTRAIN_TRY(const auto parts, parts_of(input.architecture, best.layout));
  PTRAIN_TRY(plan.predicted.classes, classes_of(input, best.layout, parts));
  return plan;
}

// What attention costs follows from how long the documents in a row are.
std::string documents_text(const PlanInput& input) {
  if (input.lengths.empty())
    return "every row counted as one document" +
           (input.no_lengths.empty() ? "" : ", since " + input.no_lengths);
  std::string text;
  for (const auto& shape : input.recipe.shapes)
    text += fmt::format(
        "{}{:.0f} % of '{}'", text.empty() ? "rows packed as when last indexed: " : ", ",
        100 * row_fill(shape.sequence, input.lengths, input.recipe.data.packing), shape.name);
  return text + " filled";
}

}  // namespace

const recipe::Parallel& parallel_of(const recipe::Recipe& recipe, const recipe::Shape& shape) {
  return shape.parallel ? *shape.parallel : recipe.parallel;
}

Result<Placement> place_ranks(const recipe::Recipe& recipe, const cluster::Cluster& cluster,
                              std::vector<std::string>& notes) {
  const auto num_nodes = static_cast<std::size_t>(std::max(1, recipe.cluster.nodes));
  if (num_nodes > cluster.nodes.size())
    return fail(ExitCode::kUsage,
                fmt::format("cluster.slurm.nodes asks for {} nodes, '{}' has {}", num_nodes,
                            cluster.name, cluster.nodes.size()),
                "lower cluster.slurm.nodes or give another cluster file");
  int cores = cluster.nodes.front().num_cores;
  for (std::size_t n = 0; n < num_nodes; ++n) cores = std::min(cores, cluster.nodes[n].num_cores);
  PTRAIN_TRY(const int gpus, gpus_a_node(cluster, num_nodes));
  if (gpus > 0) return place_on_gpus(recipe, static_cast<int>(num_nodes), gpus, notes);
  Placement out;
  PTRAIN_TRY(out.ranks_per_node, choose_ranks_per_node(recipe, static_cast<int>(num_nodes), cores));
  out.num_ranks = out.ranks_per_node * static_cast<int>(num_nodes);
  out.threads = std::max(1, cores / out.ranks_per_node);
  out.slowdown = std::max(1.0, static_cast<double>(out.ranks_per_node) / cores);
  out.overlaps = num_nodes > 1;
  if (out.ranks_per_node > cores)
    notes.push_back(
        fmt::format("{} ranks share the {} cores of a node: each is {:.2g} times slower",
                    out.ranks_per_node, cores, out.slowdown));
  if (recipe.cluster.ranks_per_node == 0 && out.ranks_per_node < cores)
    notes.push_back(
        fmt::format("{} ranks a node on {} cores: more would not divide the rows of every "
                    "shape, or the recipe fixes dp and shard",
                    out.ranks_per_node, cores));
  return out;
}

// Without units for bf16 a matrix library converts and multiplies as before.
void note_slow_bfloat16(const model::Architecture& architecture, const cluster::Figures& figures,
                        std::vector<std::string>& notes) {
  constexpr double kWorthwhile = 1.2;
  if (architecture.compute_dtype != DType::kBFloat16 || figures.assumed) return;
  if (figures.matmul_bfloat16 >= kWorthwhile * figures.matmul_float32) return;
  notes.push_back(
      fmt::format("this processor multiplies bf16 at {:.0f} GFLOP/s a core and fp32 at {:.0f}: "
                  "`precision: fp32` is as fast or faster here",
                  figures.matmul_bfloat16 / 1e9, figures.matmul_float32 / 1e9));
}

void note_offload(const model::Architecture& architecture, const run::ShapePlan& shape,
                  bool on_gpus, std::vector<std::string>& notes) {
  if (shape.layout.offload == recipe::Offload::kNone) return;
  const auto part = mesh::part_of(architecture, shape.layout, 0);
  if (!part) return;
  const auto buffers = mesh::plan_buffers(*part, shape.layout);
  const auto plan = program::plan_offload(*part, buffers, mesh::fullest_ranks(*part, buffers));
  notes.push_back(
      fmt::format("shape '{}' keeps up to {:.0f} MiB of optimizer state a rank {}", shape.name,
                  static_cast<double>(plan.store_bytes) / 1024 / 1024,
                  on_gpus ? "in the memory of its node" : "on the disk of the run directory"));
}

std::string schedule_file(const PlanInput& input, const recipe::Parallel& parallel) {
  const auto file = input.schedules.find(parallel.schedule);
  return file == input.schedules.end() ? "" : file->second;
}

Result<Planning> plan_recipe(const PlanInput& input) {
  Planning out;
  const recipe::Recipe& recipe = input.recipe;
  for (const auto& shape : recipe.shapes) PTRAIN_CHECK(check_shape(shape));
  PTRAIN_TRY(const model::Architecture architecture, model::make_architecture(recipe));
  PTRAIN_TRY(const Placement placement, place_ranks(recipe, input.cluster, out.notes));
  for (const recipe::Shape& shape : recipe.shapes)
    PTRAIN_CHECK(check_degrees(shape.name, parallel_of(recipe, shape), placement.num_ranks));
  if (input.cluster.figures.assumed)
    out.notes.push_back("times come from assumed figures, not from this machine");
  note_slow_bfloat16(architecture, input.cluster.figures, out.notes);
  out.plan.build = input.build;
  out.plan.recipe_hash = input.recipe_hash;
  out.plan.recipe = recipe;
  out.plan.recipe.model = architecture.config;
  out.plan.recipe_folder = input.recipe_folder;
  out.plan.cluster = input.cluster.name;
  out.figures = input.cluster.figures.source;
  out.documents = documents_text(input);
  out.plan.peak_flops_per_rank =
      input.cluster.figures.matmul(architecture.compute_dtype) * placement.threads;
  out.plan.ranks = places(input.cluster, placement);
  for (const auto& shape : recipe.shapes) {
    const SearchInput search_input{
        architecture,
        shape,
        parallel_of(recipe, shape),
        input.cluster,
        placement,
        packed_attention_load(shape.sequence, input.lengths, recipe.data.packing,
                              input.cluster.figures.attention.block_rows),
        recipe::keeps_copy(recipe.checkpoint),
        schedule_file(input, parallel_of(recipe, shape))};
    PTRAIN_TRY(Ranking ranking, search(search_input));
    PTRAIN_TRY(run::ShapePlan plan, shape_plan(search_input, ranking));
    note_offload(architecture, plan, placement.on_gpus, out.notes);
    out.plan.shapes.push_back(std::move(plan));
    out.rankings.push_back(std::move(ranking));
  }
  return out;
}

}  // namespace ptrain::plan
