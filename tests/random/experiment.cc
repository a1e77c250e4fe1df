#include "tests/random/experiment.h"

#include <fmt/format.h>

#include <random>
#include <utility>

#include "core/mesh/part.h"
#include "core/model/optimizer.h"
#include "core/program/compile.h"
#include "core/program/validate.h"
#include "core/schedule/csv.h"
#include "engine/base/engine_error.h"
#include "launcher/plan/rules/rules.h"
#include "launcher/plan/stages.h"
#include "tests/support/random_schedule.h"
#include "tests/support/small_model.h"

namespace ptrain::random {
namespace {

using parity::RowKind;
using recipe::OptimizerKind;

template <class T>
using Words = std::vector<std::pair<std::string_view, T>>;

const Words<OptimizerKind> kOptimizers = {{"adamw", OptimizerKind::kAdamW},
                                          {"muon", OptimizerKind::kMuon},
                                          {"adam8bit", OptimizerKind::kAdam8bit},
                                          {"lion", OptimizerKind::kLion},
                                          {"sgd", OptimizerKind::kSgd}};
const Words<RowKind> kRows = {{"whole_document", RowKind::kWholeDocument},
                              {"one_document", RowKind::kOneDocument},
                              {"next_fit", RowKind::kNextFit},
                              {"first_fit", RowKind::kFirstFit},
                              {"best_fit_decreasing", RowKind::kBestFit}};
const Words<DType> kPrecisions = {{"fp64", DType::kFloat64}, {"fp32", DType::kFloat32}};

template <class T>
Result<T> named(const Words<T>& words, std::string_view word) {
  for (const auto& [name, value] : words)
    if (name == word) return value;
  return fail(ExitCode::kUsage, fmt::format("nothing is called '{}'", word));
}

void set_experts(const Case& one, recipe::Model& model) {
  model.num_experts = one.experts;
  model.num_experts_per_tok = one.topk;
  model.expert_capacity_factor = static_cast<double>(one.capacity_percent) / 100;
  if (model.moe_intermediate_size > 0) model.moe_intermediate_size = one.expert_ffn;
  if (model.n_group > 0) model.n_group = one.experts % 3 == 0 ? 3 : 2;
}

// A schedule's order by the case's seed.
std::string random_order(const Case& one, const mesh::Layout& layout) {
  std::mt19937 random(static_cast<unsigned>(one.seed));
  return schedule::to_csv(
      test::random_legal({.num_ranks = layout.pp,
                          .num_virtual = layout.num_virtual,
                          .num_micro_batches = static_cast<int>(layout.num_micro_batches)},
                         random));
}

Status set_rows(const Case& one, mesh::Layout& layout) {
  const std::int64_t each = layout.num_data_ranks() * one.micro_batch;
  if (one.micro_batch < 1 || one.rows < each || one.rows % each != 0)
    return fail(ExitCode::kUsage, fmt::format("{} rows over {}", one.rows, each));
  layout.micro_batch = one.micro_batch;
  layout.num_micro_batches = one.rows / each;
  return {};
}

mesh::Layout degrees_of(const Case& one) {
  const auto degree = [](std::int64_t value) { return static_cast<int>(value); };
  mesh::Layout layout;
  layout.dp = degree(one.dp);
  layout.shard = degree(one.shard);
  layout.zero = degree(one.zero);
  layout.cp = degree(one.ring * one.ulysses);
  layout.ulysses = degree(one.ulysses);
  layout.tp = degree(one.tp);
  layout.ep = degree(one.ep);
  layout.etp = degree(one.etp);
  layout.pp = degree(one.pp);
  layout.num_virtual = degree(one.num_virtual);
  layout.spread_embedding = one.spread_embedding != 0;
  layout.spread_head = one.spread_head != 0;
  layout.prefetch = degree(one.prefetch);
  layout.shared_window = one.window != 0;
  return layout;
}

Status check_rules(const Case& one, const mesh::Layout& layout,
                   const model::Architecture& architecture) {
  const plan::Space space = space_of(one, architecture);
  for (const plan::Rule& rule : plan::rules())
    if (const auto objection = rule.check(layout, space))
      return fail(ExitCode::kUsage, objection->reason + ": " + objection->detail);
  return {};
}

// All that a rank does before its first step.
Status compile_world(const mesh::Layout& layout, const model::Architecture& whole) {
  std::vector<model::Architecture> parts;
  std::vector<program::Program> programs;
  for (int rank = 0; rank < layout.num_ranks(); ++rank) {
    PTRAIN_TRY(model::Architecture part, mesh::part_of(whole, layout, rank));
    PTRAIN_TRY(program::Program compiled, program::compile({part, layout, "random"}, rank));
    parts.push_back(std::move(part));
    programs.push_back(std::move(compiled));
  }
  std::vector<const program::Program*> world;
  std::vector<const model::Architecture*> pointers;
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    world.push_back(&programs[rank]);
    pointers.push_back(&parts[rank]);
  }
  return program::validate(world, pointers, layout);
}

}  // namespace

recipe::Model model_of(const Case& one) {
  recipe::Model model = support::small_model(one.family);
  model.num_hidden_layers = one.layers;
  model.hidden_size = one.hidden;
  model.intermediate_size = one.ffn;
  model.num_attention_heads = one.heads;
  if (model.num_key_value_heads > 0) {
    model.num_key_value_heads = one.kv_heads;
    model.head_dim = one.head_dim;
  }
  model.vocab_size = one.vocab;
  model.tie_word_embeddings = one.tied != 0;
  if (model.max_window_layers > one.layers) model.max_window_layers = one.layers;
  if (support::has_experts(one.family)) set_experts(one, model);
  return model;
}

recipe::Optimizer optimizer_of(const Case& one) {
  recipe::Optimizer optimizer;
  optimizer.kind = value_or_throw(named(kOptimizers, one.optimizer));
  return optimizer;
}

Result<model::Architecture> architecture_of(const Case& one) {
  PTRAIN_TRY(const DType dtype, named(kPrecisions, one.precision));
  PTRAIN_CHECK(named(kOptimizers, one.optimizer));
  PTRAIN_CHECK(named(kRows, one.packing));
  PTRAIN_TRY(model::Architecture architecture, model::make_architecture(model_of(one), dtype));
  model::use_optimizer(architecture, optimizer_of(one));
  return architecture;
}

plan::Space space_of(const Case& one, const model::Architecture& architecture) {
  plan::Space space;
  space.num_ranks = static_cast<int>(one.num_ranks());
  space.rows = one.rows;
  space.fixed.schedule = one.pp > 1 ? one.schedule : "";
  space.fixed.stages = one.pp > 1 ? one.stages : "";
  if (one.spread_embedding != 0) space.fixed.embedding = recipe::Embedding::kAllStages;
  if (one.spread_head != 0) space.fixed.head = recipe::Head::kAllStages;
  space.fixed.stage_recompute = one.stage_recompute;
  space.fixed.stage_dtype = one.stage_dtype;
  space.shared_window = one.window != 0;
  if (one.offload == "optimizer") space.offload = recipe::Offload::kOptimizer;
  space.architecture = &architecture;
  space.sequence = one.sequence;
  return space;
}

Result<mesh::Layout> layout_of(const Case& one, const model::Architecture& architecture) {
  mesh::Layout layout = degrees_of(one);
  PTRAIN_CHECK(set_rows(one, layout));
  const auto recompute = recipe::recompute_named(one.recompute);
  if (!recompute) return fail(ExitCode::kUsage, "no such recompute: " + one.recompute);
  layout.recompute = *recompute;
  const plan::Space space = space_of(one, architecture);
  layout.offload = space.offload;
  if (layout.num_stages() == 1) return layout;
  if (one.schedule == "random") {
    layout.schedule_csv = random_order(one, layout);
  } else {
    layout.schedule = one.schedule;
  }
  PTRAIN_TRY(layout.stage_layers, plan::stage_layers_of(layout, space));
  layout.layer_dtypes = plan::layer_dtypes_of(layout, space);
  if (one.stage_recompute.empty()) return layout;
  PTRAIN_TRY(layout.stage_recompute,
             plan::stage_recompute_from(one.stage_recompute, layout.num_stages()));
  return layout;
}

Status check(const Case& one) {
  PTRAIN_TRY(const model::Architecture architecture, architecture_of(one));
  PTRAIN_TRY(const mesh::Layout layout, layout_of(one, architecture));
  PTRAIN_CHECK(program::check_layout(layout));
  PTRAIN_CHECK(check_rules(one, layout, architecture));
  const auto compiled = compile_world(layout, architecture);
  if (compiled) return {};
  return fail(ExitCode::kBug, "the planner's rules let it through: " + compiled.error().message,
              compiled.error().hint);
}

parity::Experiment experiment_of(const Case& one) {
  const auto architecture = value_or_throw(architecture_of(one));
  parity::Experiment experiment;
  experiment.model = model_of(one);
  experiment.dtype = value_or_throw(named(kPrecisions, one.precision));
  experiment.layout = value_or_throw(layout_of(one, architecture));
  experiment.sequence = one.sequence;
  experiment.num_steps = static_cast<int>(one.steps);
  experiment.learning_rate = one.optimizer == "lion" ? 1e-3 : 1e-2;
  if (one.precision == "fp32") experiment.learning_rate = 1e-3;
  experiment.optimizer = optimizer_of(one);
  experiment.seed = static_cast<std::uint64_t>(one.seed);
  experiment.rows = value_or_throw(named(kRows, one.packing));
  return experiment;
}

parity::Experiment one_rank(const Case& one) {
  parity::Experiment experiment = experiment_of(one);
  mesh::Layout alone;
  alone.micro_batch = one.rows;
  alone.layer_dtypes = experiment.layout.layer_dtypes;
  experiment.layout = alone;
  return experiment;
}

}  // namespace ptrain::random
