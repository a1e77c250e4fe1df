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

std::vector<Action> run_passes(const CompileInput& input) {
  const PassContext context{input.architecture, input.layout};
  const bool train = input.purpose == Purpose::kTrain;
  const Schedule schedule = one_stage(static_cast<int>(input.layout.num_micro_batches), train);
  Draft draft = lay_segments(schedule.front(), train, context);
  if (train) draft = add_recompute(std::move(draft), context);
  draft = add_gathers(std::move(draft), context);
  if (train) {
    draft = add_reduction(std::move(draft), context);
    draft = add_optimizer(std::move(draft), context);
    draft = add_offload(std::move(draft), context);
  }
  return std::move(draft).finish();
}

}  // namespace

Status check_layout(const mesh::Layout& layout) {
  constexpr std::int64_t kMost = 1 << 20;
  PTRAIN_CHECK(check_absent("tp", layout.tp));
  PTRAIN_CHECK(check_absent("cp", layout.cp));
  PTRAIN_CHECK(check_absent("pp", layout.pp));
  PTRAIN_CHECK(check_range("dp", layout.dp, 1, kMost));
  PTRAIN_CHECK(check_range("shard", layout.shard, 1, kMost / layout.dp));
  PTRAIN_CHECK(check_range("zero", layout.zero, 1, 3));
  PTRAIN_CHECK(check_range("micro_batch", layout.micro_batch, 1, kMost));
  PTRAIN_CHECK(check_range("number of micro-batches", layout.num_micro_batches, 1, kMost));
  return check_range("prefetch", layout.prefetch, 0, kMost);
}

Result<Program> compile(const CompileInput& input, int rank) {
  PTRAIN_CHECK(check_layout(input.layout));
  PTRAIN_CHECK(check_range("rank", rank, 0, input.layout.num_ranks() - 1));
  return Program{rank, input.layout.num_ranks(), input.shape, run_passes(input)};
}

}  // namespace ptrain::program
