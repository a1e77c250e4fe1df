#include "engine/layers/router_part.h"

#include <algorithm>
#include <cmath>
#include <numeric>
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
    : moe_(architecture.decoder.moe),
      shape_(shape_of(moe_)),
      dtype_(architecture.dtype),
      share_(architecture) {
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

Task RouterPart::choose(const Context& context, const Tensor& normed, const Kept& kept) const {
  make_logits(context, normed, kept.logits);
  {
    std::vector<Buffer> buffers;
    const Tensor bias =
        moe_.has_bias ? wide(context.parameters[bias_], context.arena, buffers) : Tensor();
    kernels::choose_experts(shape_, kept.logits, bias, kept.chosen);
  }
  if (moe_.capacity_factor > 0) co_await drop_beyond_capacity(context, kept.chosen);
  remake(kept);
}

void RouterPart::follow(const Context& context, const Tensor& normed, const Kept& kept) const {
  make_logits(context, normed, kept.logits);
  if (planted(Bug::kRoutedAgain)) kernels::choose_experts(shape_, kept.logits, {}, kept.chosen);
  remake(kept);
}

void RouterPart::remake(const Kept& kept) const {
  kernels::weigh_experts(shape_, kept.logits, kept.chosen, kept.weights);
}

Task RouterPart::drop_beyond_capacity(const Context& context, const Tensor& chosen) const {
  std::vector<Buffer> buffers;
  const Tensor all = share_.whole_with(chosen, context.arena, buffers);
  if (!share_.alone()) co_await exchange(share_.gather(all));
  drop(router_rows(context.batch, share_), all);
  copy_tensor(share_.own(all), chosen);
}

// An expert takes the first tokens of a row that choose it.
void RouterPart::drop(const RouterRows& rows, const Tensor& chosen) const {
  std::vector<std::int64_t> taken(at(rows.num_rows() * moe_.num_experts), 0);
  for (std::int64_t t = 0; t < chosen.rows; ++t) {
    const std::int64_t place = planted(Bug::kCapacityByRank) ? t : rows.in_order[at(t)];
    const std::int64_t row = rows.row_of[at(place)];
    if (row < 0) continue;
    const double mean = static_cast<double>(rows.num_tokens[at(row)] * moe_.top_k) /
                        static_cast<double>(moe_.num_experts);
    const auto capacity = static_cast<std::int64_t>(std::ceil(moe_.capacity_factor * mean));
    auto* choice = chosen.as<std::int32_t>() + place * chosen.stride;
    const std::int64_t counted = planted(Bug::kCapacityOfBatch) ? 0 : row;
    for (std::int64_t j = 0; j < chosen.cols; ++j)
      if (++taken[at(counted * moe_.num_experts + choice[j])] > capacity) choice[j] = ~choice[j];
  }
}

Task RouterPart::count(const Context& context, const Tensor& chosen, Choices& choices) const {
  std::vector<Buffer> buffers;
  const Tensor all = share_.whole_with(chosen, context.arena, buffers);
  if (!share_.alone()) co_await exchange(share_.gather(all));
  choices.rows = router_rows(context.batch, share_);
  const std::int64_t num_rows = choices.rows.num_rows();
  choices.counts = count_choices(choices.rows.row_of, num_rows, all, moe_.num_experts);
  choices.own = count_choices(choices.rows.row_of_own(), num_rows, chosen, moe_.num_experts);
  if (planted(Bug::kBalanceOfOwnTokens)) choices.counts = choices.own;
}

Task RouterPart::backward(const Context& context, std::span<const GradientTarget> gradients,
                          const Kept& kept, const Gradient& in, const Tensor& dnormed) const {
  Choices choices;
  co_await count(context, kept.chosen, choices);
  add_sums(context, kept, choices, in.sums);
  router_gradient(context, kept, choices, in.dweights);
  std::vector<Buffer> buffers;
  const Tensor matrix = wide(context.parameters[matrix_], context.arena, buffers);
  kernels::matmul(kept.logits, matrix, dnormed, {.accumulate = true});
  const GradientTarget& target = gradients[matrix_];
  kernels::matmul(kept.logits, wide(in.normed, context.arena, buffers), target.tensor,
                  {.transpose_a = true, .accumulate = target.accumulate});
  if (moe_.has_bias) bias_gradient(choices, gradients[bias_]);
}

// The balance loss of a row is coefficient * experts * sum_e f_e P_e, with f_e the share of choices
// and P_e the mean probability; the other the mean of the squared log-sum-exp.
void RouterPart::router_gradient(const Context& context, const Kept& kept, const Choices& choices,
                                 const Tensor& dweights) const {
  const RouterRows& rows = choices.rows;
  const auto own = rows.row_of_own();
  std::vector<std::int32_t> row_of(own.begin(), own.end());
  if ((moe_.balance_loss == 0 && moe_.z_loss == 0) || planted(Bug::kAuxiliaryDropped))
    std::ranges::fill(row_of, -1);
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
            factor * static_cast<double>(choices.counts[at(counted * moe_.num_experts + e)]));
    }
  });
  kernels::router_backward(shape_, kept.chosen, dweights, {row_of, balance, square}, kept.logits);
}

// Of this rank's tokens; the shares of experts in the balance loss are those of whole rows.
void RouterPart::add_sums(const Context& context, const Kept& kept, const Choices& choices,
                          RouterSums& sums) const {
  const RouterRows& rows = choices.rows;
  std::vector<Buffer> buffers;
  kernels::RouterSums of{
      take_scratch(context.arena, dtype_, rows.num_rows(), moe_.num_experts, buffers),
      take_scratch(context.arena, dtype_, 1, rows.num_rows(), buffers)};
  kernels::sum_router(shape_, kept.logits, rows.row_of_own(), of);
  sums.begin(num_layers_, moe_.num_experts);
  sums.entropy += of.entropy;
  sums.num_tokens += static_cast<double>(
      std::ranges::count_if(rows.row_of_own(), [](std::int32_t row) { return row >= 0; }));
  for (std::int64_t row = 0; row < rows.num_rows(); ++row) {
    const double per_token = rows.targets_per_token(row);
    dispatch(dtype_, [&]<class T>(T) {
      const T* probabilities = of.probabilities.as<T>() + row * moe_.num_experts;
      double balance = 0;
      for (std::int64_t e = 0; e < moe_.num_experts; ++e)
        balance += static_cast<double>(choices.counts[at(row * moe_.num_experts + e)]) *
                   static_cast<double>(probabilities[e]);
      sums.balance_loss += balance * per_token * balance_factor(rows, row);
      sums.z_loss += per_token * static_cast<double>(of.squares.as<T>()[row]);
    });
  }
  for (std::size_t i = 0; i < choices.own.size(); ++i)
    sums.loads[at(place_ * moe_.num_experts) + i % at(moe_.num_experts)] +=
        static_cast<double>(choices.own[i]);
  const auto* choice = kept.chosen.as<std::int32_t>();
  sums.num_dropped += static_cast<double>(
      std::count_if(choice, choice + kept.chosen.num_elements(), kernels::is_dropped));
}

// Of a product of a count and a probability, to that of a share and a mean.
double RouterPart::balance_factor(const RouterRows& rows, std::int64_t row) const {
  const auto tokens = static_cast<double>(std::max<std::int64_t>(rows.num_tokens[at(row)], 1));
  return static_cast<double>(moe_.num_experts) / (tokens * static_cast<double>(moe_.top_k));
}

// Whole numbers: below 2^24 sums over ranks are exact in float32, and so is what their sign says.
void RouterPart::bias_gradient(const Choices& choices, const GradientTarget& target) const {
  std::vector<std::int64_t> loads(at(moe_.num_experts), 0);
  for (std::size_t i = 0; i < choices.own.size(); ++i) loads[i % loads.size()] += choices.own[i];
  const std::int64_t total = std::accumulate(loads.begin(), loads.end(), std::int64_t{0});
  begin_sum(target);
  dispatch(target.tensor.dtype, [&]<class T>(T) {
    for (std::size_t e = 0; e < loads.size(); ++e)
      target.tensor.as<T>()[e] += static_cast<T>(moe_.num_experts * loads[e] - total);
  });
}

}  // namespace ptrain::layers
