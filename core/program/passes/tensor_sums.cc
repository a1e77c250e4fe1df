#include "core/program/passes/passes.h"

namespace ptrain::program {

std::vector<int> last_sums(const Draft& draft, const model::Architecture& architecture) {
  std::vector<int> writes(static_cast<std::size_t>(architecture.num_groups()), -1);
  std::vector<int> sums = writes;
  for (const Action& action : draft.actions()) {
    for (const int group : groups_written(action, architecture))
      writes[static_cast<std::size_t>(group)] = action.id;
    const bool is_sum = action.kind == Kind::kReduceGrad || action.kind == Kind::kExchange;
    if (is_sum && action.group >= 0) sums[static_cast<std::size_t>(action.group)] = action.id;
  }
  for (std::size_t group = 0; group < writes.size(); ++group)
    if (sums[group] >= 0) writes[group] = sums[group];
  return writes;
}

std::vector<bool> groups_summed(const model::Architecture& architecture) {
  std::vector<bool> summed(static_cast<std::size_t>(architecture.num_groups()));
  for (const model::ParameterSpec& parameter : architecture.parameters)
    if (parameter.sum_ranks > 1) summed[static_cast<std::size_t>(parameter.group)] = true;
  return summed;
}

// At the end of the step: an action that waits for a reduction keeps the rank from computing.
Draft add_tensor_sums(Draft draft, const PassContext& context) {
  const std::vector<bool> summed = groups_summed(context.architecture);
  const std::vector<int> last = last_sums(draft, context.architecture);
  for (std::size_t group = 0; group < last.size(); ++group) {
    if (!summed[group] || last[group] < 0) continue;
    Action sum;
    sum.lane = Lane::kReduce;
    sum.kind = Kind::kExchange;
    sum.group = static_cast<int>(group);
    sum.attributes = {{"kind", "sum_gradients"}, {"axis", "tp"}};
    sum.after.push_back(last[group]);
    draft.add(std::move(sum));
  }
  return draft;
}

}  // namespace ptrain::program
