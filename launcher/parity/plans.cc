#include "launcher/parity/plans.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/mesh/buffer_plan.h"
#include "core/mesh/part.h"
#include "core/model/optimizer.h"
#include "core/program/compile.h"
#include "launcher/cluster/host.h"
#include "launcher/plan/memory.h"

namespace ptrain::parity {

namespace {

std::int64_t tokens_of_step(const mesh::Layout& layout, std::int64_t sequence) {
  return layout.micro_batch * layout.num_micro_batches * layout.num_data_ranks() * sequence;
}

Result<std::int64_t> predicted_bytes(const run::Plan& plan) {
  const mesh::Layout& layout = plan.shapes.front().layout;
  PTRAIN_TRY(const model::Architecture whole, model::make_architecture(plan.recipe));
  PTRAIN_TRY(const model::Architecture architecture, mesh::part_of(whole, layout, 0));
  const auto buffers = mesh::plan_buffers(architecture, 1);
  PTRAIN_TRY(const program::Program program,
             program::compile({architecture, layout, plan.shapes.front().name}, 0));
  const program::MemoryContext context{
      architecture, layout, buffers, plan.recipe.shapes.front().sequence, {}};
  program::BytesByClass bytes = program::peak_bytes(program, context);
  plan::add_estimates(bytes, context);
  return program::total_bytes(bytes);
}

}  // namespace

run::Plan with_one_micro_batch(const run::Plan& plan, std::size_t shape) {
  run::Plan result = plan;
  run::ShapePlan& only = result.shapes.front() = plan.shapes[shape];
  result.shapes.resize(1);
  recipe::Shape& wanted = result.recipe.shapes.front() = plan.recipe.shapes[shape];
  result.recipe.shapes.resize(1);
  if (only.layout.num_stages() == 1) only.layout.num_micro_batches = 1;
  only.predicted = {};  // of the whole step
  only.rejected.clear();
  wanted.global_batch_tokens = tokens_of_step(only.layout, wanted.sequence);
  return result;
}

run::Plan on_one_rank(const run::Plan& plan) {
  run::Plan result = plan;
  mesh::Layout& layout = result.shapes.front().layout;
  mesh::Layout one;
  one.micro_batch = layout.micro_batch;
  one.num_micro_batches = layout.num_micro_batches * layout.num_data_ranks();
  one.layer_dtypes = layout.layer_dtypes;
  layout = one;
  result.ranks.resize(1);
  return result;
}

recipe::Precision precision_of(const run::Plan& plan) {
  const auto& dtypes = plan.shapes.front().layout.layer_dtypes;
  if (dtypes.empty()) return plan.recipe.precision;
  const bool rounds = std::ranges::find(dtypes, DType::kBFloat16) != dtypes.end();
  return rounds ? recipe::Precision::kBFloat16 : recipe::Precision::kFloat32;
}

Status check_memory(const run::Plan& plan) {
  PTRAIN_TRY(const cluster::Cluster host, cluster::this_host());
  PTRAIN_TRY(const std::int64_t needed, predicted_bytes(plan));
  const std::int64_t there = host.nodes.front().memory_bytes;
  if (needed <= there) return {};
  constexpr double kGib = 1 << 30;
  return fail(ExitCode::kNothingFits,
              fmt::format("one rank alone, which the layout is compared with, needs {:.1f} GiB; "
                          "this machine has {:.1f}",
                          static_cast<double>(needed) / kGib, static_cast<double>(there) / kGib),
              "compare fewer layers, e.g. model.num_hidden_layers=2, or a smaller "
              "parallel.micro_batch");
}

}  // namespace ptrain::parity
