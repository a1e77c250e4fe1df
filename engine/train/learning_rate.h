#pragma once

#include <cstdint>

#include "core/recipe/recipe.h"

namespace ptrain::train {

// The learning rate of a step (counted from 1, of total_steps over all shapes): linear from 0 to
// the peak at warmup_steps, then constant, or down to final_fraction of the peak at the last step:
// by a half cosine or a line from the warm-up on, or (wsd) by a line over the last decay_steps.
double learning_rate(const recipe::LearningRate& schedule, std::int64_t step,
                     std::int64_t total_steps);

}  // namespace ptrain::train
