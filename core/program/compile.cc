#include "core/program/compile.h"

#include <fmt/format.h>

#include "core/program/passes/passes.h"

namespace ptrain::program {
namespace {

Status check_range(std::string_view field, std::int64_t value, std::int64_t low,
                   std::int64_t high) {
  if (value >= low && value <= high) return {};
  return fail(ExitCode::kUsage, fmt::format("layout: {} is {}", field, value),
              fmt::format("allowed: {} to {}", low, high));
}

Status check_absent(std::string_view axis, int degree) {
  if (degree == 1) return {};
  return fail(ExitCode::kUsage,
              fmt::format("layout: {} is {}, but this build runs dp and shard only", axis, degree),
              fmt::format("set {} to 1", axis));
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
  constexpr std::int64_t kMost = 1 << 20;
  PTRAIN_CHECK(check_absent("ep", layout.ep));
  PTRAIN_CHECK(check_absent("etp", layout.etp));
  PTRAIN_CHECK(check_range("dp", layout.dp, 1, kMost));
  PTRAIN_CHECK(check_range("shard", layout.shard, 1, kMost / layout.dp));
  PTRAIN_CHECK(check_range("pp", layout.pp, 1, kMost / (layout.dp * layout.shard)));
  PTRAIN_CHECK(check_range("cp", layout.cp, 1, kMost));
  PTRAIN_CHECK(check_range("ulysses", layout.ulysses, 1, layout.cp));
  if (layout.cp % layout.ulysses != 0)
    return fail(ExitCode::kUsage,
                fmt::format("layout: ulysses is {}, which does not divide cp {}", layout.ulysses,
                            layout.cp),
                "cp is the product of ring and ulysses");
  PTRAIN_CHECK(check_range("virtual", layout.num_virtual, 1, kMost));
  if (layout.num_stages() > 1 && layout.schedule.empty() && layout.schedule_csv.empty())
    return fail(ExitCode::kUsage, "layout: a pipeline has no schedule",
                "name one of `ptrain schedule --list`");
  if (layout.num_stages() > 1 && layout.shared_window)
    return fail(ExitCode::kUsage, "layout: stages of a pipeline share no window of memory",
                "leave shared_window out");
  PTRAIN_CHECK(check_range("tp", layout.tp, 1, kMost));
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
  const int context_ranks = input.architecture.ring.size * input.architecture.ulysses.size;
  if (context_ranks != input.layout.cp)
    return fail(ExitCode::kBug,
                fmt::format("a model for {} context ranks, and a layout for {}: give its part",
                            context_ranks, input.layout.cp));
  PTRAIN_TRY(const Pipeline pipeline,
             pipeline_of(input.layout, static_cast<int>(input.architecture.layers.size()),
                         input.purpose == Purpose::kTrain));
  const int stage_rank = mesh::coordinates_of(input.layout, rank).pp;
  return Program{rank, input.layout.num_ranks(), input.shape,
                 run_passes(input, pipeline, stage_rank)};
}

}  // namespace ptrain::program
