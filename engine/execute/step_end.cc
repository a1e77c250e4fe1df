#include "engine/execute/step_end.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

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

double own_squares(std::span<state::GroupBuffer> groups) {
  double squares = 0;
  for (auto& group : groups)
    for (const auto& run : group.runs())
      if (!group.is_balance(run) && (group.counts(run) || planted(Bug::kNormOfCopies)))
        squares += kernels::square_sum(group.gradient(run));
  return squares;
}

optim::Piece piece_of(const model::ParameterSpec& parameter, state::GroupBuffer& group,
                      const mesh::ShardRun& run) {
  optim::Piece piece{parameter, group.master(run), group.gradient(run), {}};
  for (const auto& state : group.state_pieces(run)) piece.state.push_back(group.state(state));
  return piece;
}

}  // namespace

StepResult reduce_norm(std::span<state::GroupBuffer> groups, const layers::LossSums& sums,
                       double clip_norm, comm::Communicator& world) {
  const double own = own_squares(groups);
  std::vector<double> totals{sums.loss, static_cast<double>(sums.num_targets), own};
  const std::vector<double> routers = to_numbers(sums.routers);
  totals.insert(totals.end(), routers.begin(), routers.end());
  fault::point("train.norm.world");
  sum_over(world, totals);
  const double squares = planted(Bug::kLocalClipNorm) ? own : totals[2];

  StepResult result;
  result.num_targets = static_cast<std::int64_t>(totals[1]);
  result.routers =
      report_of({totals.begin() + 3, totals.end()}, sums.routers.num_experts, result.num_targets);
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
