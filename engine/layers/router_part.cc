#include "engine/layers/router_part.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/planted.h"
#include "engine/kernels/matmul.h"
#include "engine/kernels/rows.h"
#include "engine/layers/router_rows.h"

namespace ptrain::layers {
namespace {

using model::Role;

kernels::RouterShape shape_of(const model::MoeSpec& moe) {
  return {.num_experts = moe.num_experts,
          .top_k = moe.top_k,
          .sigmoid = moe.score == model::RouterScore::kSigmoid,
          .normalises = moe.normalises,
          .scale = moe.scale,
          .num_groups = moe.num_groups,
          .top_groups = moe.top_groups,
          .two_best = moe.group_score == model::GroupScore::kTwoBest};
}

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

}  // namespace

RouterPart::RouterPart(const model::Architecture& architecture, const model::LayerSpec& spec)
    : moe_(architecture.decoder.moe), shape_(shape_of(moe_)), dtype_(architecture.dtype) {
  for (std::size_t block = 0; block < architecture.decoder.has_experts.size(); ++block) {
    if (!architecture.decoder.has_experts[block]) continue;
    if (std::cmp_less(block + 1, spec.index)) ++place_;
    ++num_layers_;
  }
  const Places places(architecture, spec);
  matrix_ = places.parameter(Role::kRouter);
  if (moe_.has_bias) bias_ = places.parameter(Role::kRouterBias);
  stash_ = {places.stash("router"), places.stash("chosen"), places.stash("weights")};
}

RouterPart::Kept RouterPart::kept(Workspace& work) const {
  return {work.stream_stash_or_scratch(stash_.logits, moe_.num_experts),
          work.stream_stash_or_scratch(stash_.chosen, moe_.top_k, DType::kInt32),
          work.stream_stash_or_scratch(stash_.weights, moe_.top_k)};
}

Tensor RouterPart::wide(const Tensor& tensor, Arena& arena, std::vector<Buffer>& buffers) const {
  const Tensor result = itself_or_room(tensor, dtype_, arena, buffers);
  copy_tensor(tensor, result);
  return result;
}

void RouterPart::make_logits(const Context& context, const Tensor& normed,
                             const Tensor& logits) const {
  std::vector<Buffer> buffers;
  const Tensor matrix = wide(context.parameters[matrix_], context.arena, buffers);
  kernels::matmul(wide(normed, context.arena, buffers), matrix, logits, {.transpose_b = true});
}

void RouterPart::choose(const Context& context, const Tensor& normed, const Kept& kept) const {
  make_logits(context, normed, kept.logits);
  std::vector<Buffer> buffers;
  const Tensor bias =
      moe_.has_bias ? wide(context.parameters[bias_], context.arena, buffers) : Tensor();
  kernels::choose_experts(shape_, kept.logits, bias, kept.chosen);
  if (moe_.capacity_factor > 0) drop_beyond_capacity(context, kept.chosen);
  remake(kept);
}

void RouterPart::follow(const Context& context, const Tensor& normed, const Kept& kept) const {
  make_logits(context, normed, kept.logits);
  remake(kept);
}

void RouterPart::remake(const Kept& kept) const {
  kernels::weigh_experts(shape_, kept.logits, kept.chosen, kept.weights);
}

// An expert takes the first tokens of a row that choose it.
void RouterPart::drop_beyond_capacity(const Context& context, const Tensor& chosen) const {
  const RouterRows rows = router_rows(context.batch);
  std::vector<std::int64_t> taken(at(rows.num_rows() * moe_.num_experts), 0);
  for (std::int64_t t = 0; t < chosen.rows; ++t) {
    const std::int64_t row = rows.row_of[at(t)];
    if (row < 0) continue;
    const double mean = static_cast<double>(rows.num_tokens[at(row)] * moe_.top_k) /
                        static_cast<double>(moe_.num_experts);
    const auto capacity = static_cast<std::int64_t>(std::ceil(moe_.capacity_factor * mean));
    auto* choice = chosen.as<std::int32_t>() + t * chosen.stride;
    const std::int64_t counted = planted(Bug::kCapacityOfBatch) ? 0 : row;
    for (std::int64_t j = 0; j < chosen.cols; ++j)
      if (++taken[at(counted * moe_.num_experts + choice[j])] > capacity) choice[j] = ~choice[j];
  }
}

void RouterPart::backward(const Context& context, std::span<const GradientTarget> gradients,
                          const Kept& kept, const Gradient& in, const Tensor& dnormed) const {
  router_gradient(context, kept, in.dweights);
  std::vector<Buffer> buffers;
  const Tensor matrix = wide(context.parameters[matrix_], context.arena, buffers);
  kernels::matmul(kept.logits, matrix, dnormed, {.accumulate = true});
  const GradientTarget& target = gradients[matrix_];
  kernels::matmul(kept.logits, wide(in.normed, context.arena, buffers), target.tensor,
                  {.transpose_a = true, .accumulate = target.accumulate});
  if (moe_.has_bias) bias_gradient(context, kept.chosen, gradients[bias_]);
}

// The balance loss of a row is coefficient * experts * sum_e f_e P_e, with f_e the share of choices
// and P_e the mean probability; the other the mean of the squared log-sum-exp.
void RouterPart::router_gradient(const Context& context, const Kept& kept,
                                 const Tensor& dweights) const {
  RouterRows rows = router_rows(context.batch);
  if (moe_.balance_loss == 0 && moe_.z_loss == 0) std::ranges::fill(rows.row_of, -1);
  const auto counts = count_choices(rows, kept.chosen, moe_.num_experts);
  std::vector<Buffer> buffers;
  const auto scratch = [&](std::int64_t count, std::int64_t cols) {
    return take_scratch(context.arena, dtype_, count, cols, buffers);
  };
  const Tensor balance = scratch(rows.num_rows(), moe_.num_experts);
  const Tensor square = scratch(1, rows.num_rows());
  dispatch(dtype_, [&]<class T>(T) {
    for (std::int64_t row = 0; row < rows.num_rows(); ++row) {
      const double per_token = rows.targets_per_token(row);
      square.as<T>()[row] = static_cast<T>(moe_.z_loss * per_token);
      const double factor = moe_.balance_loss * per_token * balance_factor(rows, row);
      const std::int64_t counted = planted(Bug::kBalanceOfFirstRow) ? 0 : row;
      for (std::int64_t e = 0; e < moe_.num_experts; ++e)
        balance.as<T>()[row * moe_.num_experts + e] = static_cast<T>(
            factor * static_cast<double>(counts[at(counted * moe_.num_experts + e)]));
    }
  });
  kernels::router_backward(shape_, kept.chosen, dweights, {rows.row_of, balance, square},
                           kept.logits);
}

void RouterPart::add_sums(const Context& context, const Kept& kept, RouterSums& sums) const {
  const RouterRows rows = router_rows(context.batch);
  const auto counts = count_choices(rows, kept.chosen, moe_.num_experts);
  std::vector<Buffer> buffers;
  kernels::RouterSums of{
      take_scratch(context.arena, dtype_, rows.num_rows(), moe_.num_experts, buffers),
      take_scratch(context.arena, dtype_, 1, rows.num_rows(), buffers)};
  kernels::sum_router(shape_, kept.logits, rows.row_of, of);
  sums.begin(num_layers_, moe_.num_experts);
  sums.entropy += of.entropy;
  for (std::int64_t row = 0; row < rows.num_rows(); ++row) {
    const auto of_row = std::span(counts).subspan(at(row * moe_.num_experts), at(moe_.num_experts));
    const double per_token = rows.targets_per_token(row);
    sums.num_tokens += static_cast<double>(rows.num_tokens[at(row)]);
    for (std::size_t e = 0; e < of_row.size(); ++e)
      sums.loads[at(place_ * moe_.num_experts) + e] += static_cast<double>(of_row[e]);
    dispatch(dtype_, [&]<class T>(T) {
      const T* probabilities = of.probabilities.as<T>() + row * moe_.num_experts;
      double balance = 0;
      for (std::size_t e = 0; e < of_row.size(); ++e)
        balance += static_cast<double>(of_row[e]) * static_cast<double>(probabilities[e]);
      sums.balance_loss += balance * per_token * balance_factor(rows, row);
      sums.z_loss += per_token * static_cast<double>(of.squares.as<T>()[row]);
    });
  }
  const auto* choices = kept.chosen.as<std::int32_t>();
  sums.num_dropped += static_cast<double>(
      std::count_if(choices, choices + kept.chosen.num_elements(), kernels::is_dropped));
}

// Of a product of a count and a probability, to that of a share and a mean.
double RouterPart::balance_factor(const RouterRows& rows, std::int64_t row) const {
  const auto tokens = static_cast<double>(std::max<std::int64_t>(rows.num_tokens[at(row)], 1));
  return static_cast<double>(moe_.num_experts) / (tokens * static_cast<double>(moe_.top_k));
}

// Whole numbers: sums over ranks are exact, and so is what their sign says.
void RouterPart::bias_gradient(const Context& context, const Tensor& chosen,
                               const GradientTarget& target) const {
  const RouterRows rows = router_rows(context.batch);
  const auto counts = count_choices(rows, chosen, moe_.num_experts);
  std::int64_t total = 0;
  for (const std::int64_t count : counts) total += count;
  begin_sum(target);
  dispatch(target.tensor.dtype, [&]<class T>(T) {
    for (std::int64_t e = 0; e < moe_.num_experts; ++e) {
      std::int64_t load = 0;
      for (std::int64_t row = 0; row < rows.num_rows(); ++row)
        load += counts[at(row * moe_.num_experts + e)];
      target.tensor.as<T>()[e] += static_cast<T>(moe_.num_experts * load - total);
    }
  });
}

}  // namespace ptrain::layers
