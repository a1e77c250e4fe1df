#pragma once

#include <cstdint>
#include <vector>

#include "core/model/decoder.h"
#include "core/recipe/breach.h"

namespace ptrain::model {

// Radians a position of each of the head_dim / 2 pairs, after scaling.
std::vector<double> rotary_frequencies(const RotarySpec& rotary, std::int64_t head_dim);

// What cosines and sines are multiplied by (yarn; else 1).
double rotary_factor(const RotarySpec& rotary);

// What latent attention multiplies its scores by beside the root of the head: the square of what
// mscale_all_dim gives (yarn; else 1).
double rotary_score_factor(const RotarySpec& rotary);

// Breaches: parameters that the type needs and lacks, or has no use for, or that contradict each
// other. `theta` 0: left to the family.
std::vector<recipe::Breach> rope_breaches(const recipe::RopeScaling& scaling, double theta);

}  // namespace ptrain::model
