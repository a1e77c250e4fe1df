#include "core/mesh/state_plan.h"

#include "core/base/divide.h"

namespace ptrain::mesh {

namespace {

constexpr std::int64_t kAlignment = 8;  // bytes: the widest value

}  // namespace

StatePlan plan_state(const model::Architecture& architecture, std::span<const ShardRun> runs) {
  StatePlan plan;
  for (const ShardRun& run : runs) {
    auto& pieces = plan.pieces.emplace_back();
    const auto& parameter = architecture.parameters[static_cast<std::size_t>(run.parameter)];
    for (model::StateTensor& tensor : model::state_of(parameter, architecture.dtype)) {
      const std::int64_t values = tensor.num_values(run.end - run.begin);
      const std::int64_t bytes = round_up(values * size_of(tensor.dtype), kAlignment);
      const std::int64_t begin = run.begin / tensor.block;
      pieces.push_back({std::move(tensor), begin, values, plan.bytes});
      plan.bytes += bytes;
    }
  }
  return plan;
}

}  // namespace ptrain::mesh
