#include "core/program/compile.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "core/program/passes/passes.h"

namespace ptrain::program {
namespace {

Status check_range(std::string_view field, std::int64_t value, std::int64_t low,
                   std::int64_t high) {
  if (value >= low && value <= high) return {};
  return fail(ExitCode::kUsage, fmt::format("layout: {} is {}", field, value),
              fmt::format("allowed: {} to {}", low, high));
}

constexpr std::int64_t kMost = 1 << 20;

// The product of the degrees is the number of ranks, which must stay a number.
Status check_degrees(const mesh::Layout& layout) {
  const std::pair<std::string_view, int> degrees[] = {{"dp", layout.dp},
                                                      {"shard", layout.shard},
                                                      {"cp", layout.cp},
                                                      {"tp", layout.tp},
                                                      {"pp", layout.pp}};
  std::int64_t num_ranks = 1;
  for (const auto& [axis, degree] : degrees) {
    PTRAIN_CHECK(check_range(axis, degree, 1, kMost / num_ranks));
    num_ranks *= degree;
  }
  return check_range("virtual", layout.num_virtual, 1, kMost / layout.pp);
}

// Whether they divide ranks and experts is for core/mesh/divisible.h to say, which knows the model.
Status check_experts(const mesh::Layout& layout) {
  PTRAIN_CHECK(check_range("etp", layout.etp, 1, layout.num_stage_ranks()));
  return check_range("ep", layout.ep, 1, layout.num_stage_ranks() / layout.etp);
}

Status check_pipeline(const mesh::Layout& layout) {
  if (layout.num_stages() == 1) return {};
  if (layout.schedule.empty() && layout.schedule_csv.empty())
    return fail(ExitCode::kUsage, "layout: a pipeline has no schedule",
                "name one of `ptrain schedule --list`");
  if (layout.shared_window)
    return fail(ExitCode::kUsage, "layout: stages of a pipeline share no window of memory",
                "leave shared_window out");
  return {};
}

// `rank`: of the pipeline.
std::vector<Action> run_passes(const CompileInput& input, const Pipeline& pipeline, int rank) {
  const PassContext context{input.architecture, input.layout};
  const bool train = input.purpose == Purpose::kTrain;
  const auto& cells = pipeline.schedule.ranks[static_cast<std::size_t>(rank)];
  Draft draft = lay_segments(cells, pipeline, train, context);
  if (train) draft = add_recompute(std::move(draft), context);
  draft = add_gathers(std::move(draft), context);
  if (train) draft = add_reduction(std::move(draft), context);
  draft = add_transfers(std::move(draft), pipeline, rank);
  if (train) {
    draft = add_tensor_sums(std::move(draft), context);
    draft = add_tied_sum(std::move(draft), pipeline, rank, context);
    draft = add_optimizer(std::move(draft), context);
    draft = add_offload(std::move(draft), context);
  }
  return add_exchanges(std::move(draft), context).finish();
}

}  // namespace

Status check_layout(const mesh::Layout& layout) {
  PTRAIN_CHECK(check_degrees(layout));
  PTRAIN_CHECK(check_experts(layout));
  PTRAIN_CHECK(check_range("ulysses", layout.ulysses, 1, layout.cp));
  if (layout.cp % layout.ulysses != 0)
    return fail(ExitCode::kUsage,
                fmt::format("layout: ulysses is {}, which does not divide cp {}", layout.ulysses,
                            layout.cp),
                "cp is the product of ring and ulysses");
  PTRAIN_CHECK(check_pipeline(layout));
  PTRAIN_CHECK(check_range("zero", layout.zero, 1, 3));
  PTRAIN_CHECK(check_range("micro_batch", layout.micro_batch, 1, kMost));
  PTRAIN_CHECK(check_range("number of micro-batches", layout.num_micro_batches, 1, kMost));
  return check_range("prefetch", layout.prefetch, 0, kMost);
}

Result<Program> compile(const CompileInput& input, int rank) {
  PTRAIN_CHECK(check_layout(input.layout));
  PTRAIN_CHECK(check_range("rank", rank, 0, input.layout.num_ranks() - 1));
  if (input.architecture.tensor.size != input.layout.tp)
    return fail(ExitCode::kBug,
                fmt::format("a model for {} tensor ranks, and a layout for {}: give its part",
                            input.architecture.tensor.size, input.layout.tp));
  const model::ExpertPlace& experts = input.architecture.experts;
  if (experts.ep != input.layout.ep || experts.etp != input.layout.etp)
    return fail(ExitCode::kBug,
                fmt::format("a model for ep {} and etp {}, and a layout for {} and {}: give its "
                            "part",
                            experts.ep, experts.etp, input.layout.ep, input.layout.etp));
  const bool is_pipeline = input.layout.pp > 1;
  const model::Architecture& part = input.architecture;
  if (part.embedding.is_spread() != (input.layout.spread_embedding && is_pipeline) ||
      part.head.is_spread() != (input.layout.spread_head && is_pipeline))
    return fail(ExitCode::kBug,
                "a model and a layout of which only one spreads embedding or head: give its part");
  const int context_ranks = input.architecture.ring.size * input.architecture.ulysses.size;
  if (context_ranks != input.layout.cp)
    return fail(ExitCode::kBug,
                fmt::format("a model for {} context ranks, and a layout for {}: give its part",
                            context_ranks, input.layout.cp));
  Pipeline own;
  if (input.pipeline == nullptr) {
    PTRAIN_TRY(own, pipeline_of(input.layout, static_cast<int>(input.architecture.layers.size()),
                                input.purpose == Purpose::kTrain));
  }
  const Pipeline& pipeline = input.pipeline == nullptr ? own : *input.pipeline;
  const int stage_rank = mesh::coordinates_of(input.layout, rank).pp;
  return Program{rank, input.layout.num_ranks(), input.shape,
                 run_passes(input, pipeline, stage_rank)};
}

}  // namespace ptrain::program
