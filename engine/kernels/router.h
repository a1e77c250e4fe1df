#pragma once

#include <cstdint>
#include <span>

#include "engine/base/tensor.h"

namespace ptrain::kernels {

// How a router chooses `top_k` of a token's experts from its logits, and weighs them. A score is
// the softmax of the logits, or the sigmoid of each.
struct RouterShape {
  std::int64_t num_experts = 0;
  std::int64_t top_k = 0;
  bool sigmoid = false;
  bool normalises = false;  // weights of the chosen add up to `scale`
  double scale = 1;
  std::int64_t num_groups = 1;  // equal runs of experts, of which the best top_groups are looked at
  std::int64_t top_groups = 1;
  bool two_best = false;  // a group is worth the sum of its two best experts, not its best
};

// What a token's choice of an expert says: the expert, or ~expert where the expert has no room.
constexpr std::int32_t expert_of(std::int32_t choice) { return choice < 0 ? ~choice : choice; }
constexpr bool is_dropped(std::int32_t choice) { return choice < 0; }

// chosen [T, top_k], int32: the experts of the best scores, best first, the lower index first where
// they are equal. bias [1, num_experts] is added to scores here and nowhere else; may be empty.
void choose_experts(const RouterShape& shape, const Tensor& logits, const Tensor& bias,
                    const Tensor& chosen);

// weights [T, top_k] of the chosen, those without room among them.
void weigh_experts(const RouterShape& shape, const Tensor& logits, const Tensor& chosen,
                   const Tensor& weights);

// What the auxiliary losses ask of the rows of a batch. A token of no row takes no part.
struct RouterLoss {
  std::span<const std::int32_t> row_of;  // of every token; -1: of none
  Tensor balance;                        // [rows, num_experts]: gradient of every probability
  Tensor square;                         // [1, rows]: factor of the squared log-sum-exp
};

// logits become their gradient. dweights: [T, top_k]. Probabilities are scores, divided by their
// sum where they are sigmoids.
void router_backward(const RouterShape& shape, const Tensor& chosen, const Tensor& dweights,
                     const RouterLoss& loss, const Tensor& logits);

// Sums over the tokens of a row: what the losses and the metrics are made of.
struct RouterSums {
  Tensor probabilities;  // [rows, num_experts]
  Tensor squares;        // [1, rows]: of log-sum-exp
  double entropy = 0;    // over all tokens of rows, in nats
};
// Both tensors are written.
void sum_router(const RouterShape& shape, const Tensor& logits,
                std::span<const std::int32_t> row_of, RouterSums& sums);

}  // namespace ptrain::kernels
