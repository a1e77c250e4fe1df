#pragma once

#include <cstdint>
#include <span>

#include "core/program/block_sizes.h"
#include "engine/base/tensor.h"

namespace ptrain::kernels {

// What becomes of the logits.
enum class LogitsUse { kLossOnly, kGradient };

// Sum over the rows that have a target (>= 0) of -log softmax(logits)[target], summed in double.
// logits [rows, vocabulary] are overwritten: with softmax - onehot of the target, zero in rows
// without one (kGradient; never divided by a count), or left in no useful state (kLossOnly).
double cross_entropy(const Tensor& logits, std::span<const std::int32_t> targets, LogitsUse use);

// The same where each rank has the logits of a part of the vocabulary, in two steps. Between them
// the ranks show each other what their parts know of every row: its largest logit, the sum of
// e^(logit - largest), and the target's logit, or 0 where the part does not have it.
using program::kPartStatistics;

struct PartTargets {
  std::span<const std::int32_t> whole;  // below 0: none
  std::span<const std::int32_t> own;    // columns of this part; below 0: of another, or none
  int part = 0;
};

// logits [rows, part] become e^(logit - largest); statistics [rows, kPartStatistics], float64.
void part_exponentials(const Tensor& logits, std::span<const std::int32_t> own_targets,
                       const Tensor& statistics);
// The sum over all parts, and the gradient of this one, from that and the statistics of all parts,
// one below the other. The same bits for every part.
double part_cross_entropy(const Tensor& logits, const PartTargets& targets,
                          const Tensor& statistics, LogitsUse use);

}  // namespace ptrain::kernels
