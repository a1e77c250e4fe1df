#include "engine/train/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "engine/base/planted.h"

namespace ptrain::train {

double learning_rate(const recipe::LearningRate& schedule, std::int64_t step,
                     std::int64_t total_steps) {
  if (planted(Bug::kLearningRateLate)) --step;
  if (step < schedule.warmup_steps)
    return schedule.peak * static_cast<double>(step) / static_cast<double>(schedule.warmup_steps);
  if (schedule.decay == recipe::Decay::kConstant) return schedule.peak;
  const auto span =
      static_cast<double>(std::max<std::int64_t>(total_steps - schedule.warmup_steps, 1));
  const double progress =
      std::clamp(static_cast<double>(step - schedule.warmup_steps) / span, 0.0, 1.0);
  const double cosine = 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
  return schedule.peak * (schedule.final_fraction + (1.0 - schedule.final_fraction) * cosine);
}

}  // namespace ptrain::train
