#include "engine/execute/step_end.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "engine/base/fault.h"
#include "engine/base/planted.h"
#include "engine/kernels/rows.h"

namespace ptrain::execute {
namespace {

void sum_over(comm::Communicator& group, std::span<double> values) {
  group
      .all_reduce(reinterpret_cast<std::byte*>(values.data()), DType::kFloat64,
                  static_cast<std::int64_t>(values.size()), comm::ReduceOp::kSum)
      ->wait();
}

// As torch.nn.utils.clip_grad_norm_: max_norm / (norm + 1e-6), at most 1.
double clip_coefficient(double clip_norm, double norm) {
  return clip_norm > 0 ? std::min(1.0, clip_norm / (norm + 1e-6)) : 1.0;
}

optim::Piece piece_of(const model::ParameterSpec& parameter, state::GroupBuffer& group,
                      const mesh::ShardRun& run) {
  optim::Piece piece{parameter, group.master(run), group.gradient(run), {}};
  for (const auto& state : group.state_pieces(run)) piece.state.push_back(group.state(state));
  return piece;
}

}  // namespace

StepResult reduce_norm(std::span<state::GroupBuffer> groups, const layers::LossSums& sums,
                       double clip_norm, comm::Communicator* shard_group,
                       comm::Communicator& world) {
  double squares = 0;
  for (auto& group : groups)
    for (const auto& run : group.runs()) squares += kernels::square_sum(group.gradient(run));
  fault::point("train.norm.shards");
  const bool is_whole = shard_group == nullptr || planted(Bug::kLocalClipNorm);
  if (!is_whole) sum_over(*shard_group, {&squares, 1});
  std::array<double, 2> totals{sums.loss, static_cast<double>(sums.num_targets)};
  fault::point("train.norm.world");
  sum_over(world, totals);

  StepResult result;
  result.num_targets = static_cast<std::int64_t>(totals[1]);
  if (planted(Bug::kLocalDenominator))
    totals[1] = static_cast<double>(sums.num_targets * world.size());
  const double count = std::max(totals[1], 1.0);
  result.loss = totals[0] / count;
  result.grad_norm = std::sqrt(squares) / count;
  const double clipped = planted(Bug::kClipsTheSum) ? std::sqrt(squares) : result.grad_norm;
  result.scale = clip_coefficient(clip_norm, clipped) / count;
  result.finite = std::isfinite(result.loss) && std::isfinite(result.grad_norm);
  return result;
}

void apply_optimizer(const model::Architecture& architecture, const StepSettings& settings,
                     const StepResult& result, state::GroupBuffer& group) {
  fault::point("train.optimizer.update");
  if (result.finite) {
    optim::Step step{settings.learning_rate, settings.step, result.scale, true};
    for (const auto& run : group.runs()) {
      const auto& parameter = architecture.parameters[static_cast<std::size_t>(run.parameter)];
      step.decays = parameter.decays || planted(Bug::kDecayOnNorms);
      optim::update(settings.optimizer, step, piece_of(parameter, group, run), group.arena());
    }
    group.publish_masters();
  }
  group.clear_gradients();
}

}  // namespace ptrain::execute
