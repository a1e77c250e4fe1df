#include "engine/train/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "engine/base/planted.h"

namespace ptrain::train {
namespace {

using recipe::Decay;

// How much of the decay is over: 0 before it, 1 at the last step.
double progress_of(const recipe::LearningRate& schedule, std::int64_t step,
                   std::int64_t total_steps) {
  const std::int64_t begin =
      schedule.decay == Decay::kWsd ? total_steps - schedule.decay_steps : schedule.warmup_steps;
  const auto span = static_cast<double>(std::max<std::int64_t>(total_steps - begin, 1));
  return std::clamp(static_cast<double>(step - begin) / span, 0.0, 1.0);
}

// What is left of the distance between the peak and the final rate.
double share_left(Decay decay, double progress) {
  switch (decay) {
    case Decay::kCosine:
      return 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
    case Decay::kLinear:
    case Decay::kWsd:
      return 1.0 - progress;
    case Decay::kConstant:
      break;
  }
  return 1.0;
}

}  // namespace

double learning_rate(const recipe::LearningRate& schedule, std::int64_t step,
                     std::int64_t total_steps) {
  if (planted(Bug::kLearningRateLate)) --step;
  if (step < schedule.warmup_steps)
    return schedule.peak * static_cast<double>(step) / static_cast<double>(schedule.warmup_steps);
  const double left = share_left(schedule.decay, progress_of(schedule, step, total_steps));
  return schedule.peak * (schedule.final_fraction + (1.0 - schedule.final_fraction) * left);
}

}  // namespace ptrain::train
