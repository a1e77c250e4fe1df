#pragma once

#include <cstdint>
#include <span>

#include "engine/base/tensor.h"

namespace ptrain::kernels {

// What becomes of the logits.
enum class LogitsUse { kLossOnly, kGradient };

// Sum over the rows that have a target (>= 0) of -log softmax(logits)[target], summed in double.
// logits [rows, vocabulary] are overwritten: with softmax - onehot of the target, zero in rows
// without one (kGradient; never divided by a count), or left in no useful state (kLossOnly).
double cross_entropy(const Tensor& logits, std::span<const std::int32_t> targets, LogitsUse use);

}  // namespace ptrain::kernels
