#include <algorithm>

#include "core/base/divide.h"
#include "engine/base/engine_error.h"
#include "engine/base/planted.h"
#include "engine/kernels/cross_entropy.h"
#include "engine/kernels/matmul.h"
#include "engine/kernels/rows.h"
#include "engine/layers/layers.h"
#include "engine/layers/norm.h"
#include "engine/layers/workspace.h"

namespace ptrain::layers {
namespace {

// Logits exist for this many tokens at a time. 128 cost 5 % of the head's matmuls at a vocabulary
// of 50257.
constexpr std::int64_t kChunkRows = 256;
// Logits rows start at multiples of this many elements: an odd vocabulary otherwise slows the
// matmul by a third.
constexpr std::int64_t kLogitsPadding = 64;

// Final norm, head matrix and loss. Stash: x.
class Head final : public Layer {
 public:
  Head(const model::Architecture& architecture, const model::LayerSpec& spec)
      : compute_(architecture.compute_dtype),
        norm_(architecture.decoder, Places(architecture, spec), model::Role::kNorm,
              model::Role::kNormBias),
        matrix_(spec.parameters.size() - 1),
        softcap_(architecture.decoder.final_softcap) {}

  void forward(const Context& context, const Tensor& x, const Tensor&) const override {
    if (!context.stash.empty()) copy_tensor(x, context.stash[0]);
  }

  void recompute(const Context&) const override {}
  void remake(const Context&) const override {}

  void backward_input(const Context& context, std::span<const GradientTarget> gradients,
                      const Tensor& dy, std::vector<WeightProduct>&, std::vector<Buffer>&,
                      LossSums& sums) const override {
    const Tensor& x = context.stash[0];
    Workspace work(context, x.dtype);
    const Tensor scale = work.scratch(norm_.statistics_cols());
    const Tensor normed = work.scratch(x.cols, compute_);
    norm_.forward(context, x, normed, scale);
    loss_and_gradients(context, normed, dy, gradients[matrix_], sums);
    norm_.backward(context, gradients, {x, scale, dy, {}}, dy);
  }

  void loss(const Context& context, const Tensor& x, LossSums& sums) const override {
    Workspace work(context, x.dtype);
    const Tensor scale = work.scratch(norm_.statistics_cols());
    const Tensor normed = work.scratch(x.cols, compute_);
    norm_.forward(context, x, normed, scale);
    each_chunk(context, normed, [&](std::int64_t begin, const Tensor& chunk, const Tensor& logits) {
      make_logits(context, chunk, logits);
      add_loss(context, begin, logits, kernels::LogitsUse::kLossOnly, sums);
    });
  }

  void logits(const Context& context, const Tensor& x, const Tensor& logits) const override {
    std::vector<Buffer> buffers;
    const Tensor scale =
        take_scratch(context.arena, x.dtype, x.rows, norm_.statistics_cols(), buffers);
    const Tensor normed = take_scratch(context.arena, compute_, x.rows, x.cols, buffers);
    norm_.forward(context, x, normed, scale);
    make_logits(context, normed, logits);
  }

 private:
  void make_logits(const Context& context, const Tensor& normed, const Tensor& logits) const {
    kernels::matmul(normed, context.parameters[matrix_], logits, {.transpose_b = true});
    if (softcap_ > 0) kernels::softcap(softcap_, logits);
  }

  // dnormed [T, H] and the matrix's gradient, a chunk of tokens at a time. The matrix is not queued
  // for backward_weight: that would keep the logits' gradient of all tokens.
  void loss_and_gradients(const Context& context, const Tensor& normed, const Tensor& dnormed,
                          const GradientTarget& matrix, LossSums& sums) const {
    const Tensor& weight = context.parameters[matrix_];
    std::vector<Buffer> kept, rounded;
    each_chunk(context, normed, [&](std::int64_t begin, const Tensor& chunk, const Tensor& logits) {
      make_logits(context, chunk, logits);
      const Tensor capped = softcap_ > 0 ? copy_of(context, logits, kept) : Tensor();
      add_loss(context, begin, logits, kernels::LogitsUse::kGradient, sums);
      if (softcap_ > 0) kernels::softcap_backward(softcap_, capped, logits);
      rounded.clear();
      const Tensor dlogits = itself_or_room(logits, compute_, context.arena, rounded);
      copy_tensor(logits, dlogits);
      kernels::matmul(dlogits, weight, dnormed.row_range(begin, chunk.rows));
      kernels::matmul(dlogits, chunk, matrix.tensor,
                      {.transpose_a = true, .accumulate = matrix.accumulate || begin > 0});
    });
  }

  // In the memory of `kept`, which holds one copy at a time.
  static Tensor copy_of(const Context& context, const Tensor& tensor, std::vector<Buffer>& kept) {
    kept.clear();
    const Tensor copy = take_scratch(context.arena, tensor.dtype, tensor.rows, tensor.cols, kept);
    copy_tensor(tensor, copy);
    return copy;
  }

  // f(first token, rows of normed, room for their logits).
  template <class F>
  void each_chunk(const Context& context, const Tensor& normed, const F& f) const {
    const std::int64_t vocabulary = context.parameters[matrix_].rows;
    const std::int64_t stride = round_up(vocabulary, kLogitsPadding);
    std::vector<Buffer> buffers;
    const Tensor room = take_scratch(context.arena, wide_of(compute_),
                                     std::min(kChunkRows, normed.rows), stride, buffers);
    for (std::int64_t begin = 0; begin < normed.rows; begin += kChunkRows) {
      const std::int64_t rows = std::min(kChunkRows, normed.rows - begin);
      f(begin, normed.row_range(begin, rows), room.row_range(0, rows).columns(0, vocabulary));
    }
  }

  static void add_loss(const Context& context, std::int64_t begin, const Tensor& logits,
                       kernels::LogitsUse use, LossSums& sums) {
    const auto targets =
        std::span(context.batch.targets)
            .subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(logits.rows));
    sums.loss += kernels::cross_entropy(logits, targets, use);
    const std::int32_t least = planted(Bug::kPaddingTrained) ? data::kNoTarget : 0;
    sums.num_targets +=
        std::ranges::count_if(targets, [&](auto target) { return target >= least; });
  }

  DType compute_;
  Norm norm_;
  std::size_t matrix_;  // [V, H], in the layer's parameters
  double softcap_;
};

}  // namespace

std::unique_ptr<Layer> make_head(const model::Architecture& architecture) {
  return std::make_unique<Head>(architecture, architecture.layers.back());
}

}  // namespace ptrain::layers
