#include "engine/execute/gradient_sums.h"

#include "engine/base/engine_error.h"
#include "engine/base/planted.h"

namespace ptrain::execute {
namespace {

LaneQueue::Stage sum_over(comm::Communicator& ranks, const Tensor& gradients) {
  return [&ranks, gradients] {
    return ranks.all_reduce(static_cast<std::byte*>(gradients.data), gradients.dtype,
                            gradients.cols, comm::ReduceOp::kSum);
  };
}

// Whether `next` follows `tensor` in memory.
bool follows(const Tensor& tensor, const Tensor& next) {
  return tensor.columns(tensor.cols, 0).data == next.data;
}

}  // namespace

GradientSums::GradientSums(const model::Architecture& part, const Communicators& communicators,
                           Sharing& sharing)
    : part_(part), communicators_(communicators), sharing_(sharing) {}

// Replicas may still read what is about to change.
LaneQueue::Stage GradientSums::begin(state::GroupBuffer& group) const {
  return [this, &group]() -> comm::WorkHandle {
    sharing_.begin_write(group.plan().group);
    return nullptr;
  };
}

std::vector<LaneQueue::Stage> GradientSums::over_pipeline(state::GroupBuffer& group) const {
  PT_CHECK(communicators_.tied != nullptr);
  if (planted(Bug::kTiedSumMissing)) return {};
  return {begin(group), sum_over(*communicators_.tied, group.gradient_shard())};
}

// Null: the rank's gradient is the whole.
comm::Communicator* GradientSums::holders_of(const mesh::ShardRun& run) const {
  const model::ParameterSpec& parameter = part_.parameters[static_cast<std::size_t>(run.parameter)];
  const int sum_ranks = parameter.sum_ranks;
  const bool of_router =
      parameter.role == model::Role::kRouter || parameter.role == model::Role::kRouterBias;
  if (of_router && planted(Bug::kRouterSumMissing)) return nullptr;
  if (sum_ranks == 1 || planted(Bug::kTensorSumMissing)) return nullptr;
  if (sum_ranks == part_.tensor.size) return communicators_.tensor_sums;
  return planted(Bug::kKeyValueSumMissing) ? nullptr : communicators_.key_value_sums;
}

std::vector<LaneQueue::Stage> GradientSums::over_tensor_ranks(state::GroupBuffer& group) const {
  std::vector<LaneQueue::Stage> stages = {begin(group)};
  comm::Communicator* ranks = nullptr;
  Tensor gradients;
  const auto finish = [&] {
    if (ranks != nullptr) stages.push_back(sum_over(*ranks, gradients));
  };
  // Neighbours in memory, such as keys and values, go together.
  for (const mesh::ShardRun& run : group.runs()) {
    const Tensor next = group.gradient(run);
    comm::Communicator* holders = holders_of(run);
    if (ranks != nullptr && ranks == holders && follows(gradients, next)) {
      gradients.cols += next.cols;
      gradients.stride = gradients.cols;
      continue;
    }
    finish();
    ranks = holders;
    gradients = next;
  }
  finish();
  return stages;
}

}  // namespace ptrain::execute
