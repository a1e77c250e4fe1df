#pragma once

#include "engine/optim/adamw.h"

namespace ptrain::optim {

// A mean in 8 bits: a code for each element and the largest magnitude of each run of 256.
struct EightBitMean {
  Tensor codes;   // uint8 [1, n]
  Tensor absmax;  // float32 [1, ceil(n / 256)]
};

// As adamw, on whole runs of 256 elements (the last may be shorter): the means are widened, moved
// and used as they are, then kept in 8 bits.
void adam8bit(const AdamWOptions& options, const Step& step, const Tensor& parameter,
              const Tensor& gradient, const EightBitMean& exp_avg, const EightBitMean& exp_avg_sq);

}  // namespace ptrain::optim
