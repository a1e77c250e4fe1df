#pragma once

#include <cstdint>
#include <vector>

#include "core/base/result.h"
#include "core/model/decoder.h"

namespace ptrain::model {

// Radians a position of each of the head_dim / 2 pairs, after scaling.
std::vector<double> rotary_frequencies(const RotarySpec& rotary, std::int64_t head_dim);

// What cosines and sines are multiplied by (yarn; else 1).
double rotary_factor(const RotarySpec& rotary);

// Errors (kUsage): parameters that the type needs and lacks, or has no use for.
Status check_rope_scaling(const recipe::RopeScaling& scaling, double theta);

}  // namespace ptrain::model
