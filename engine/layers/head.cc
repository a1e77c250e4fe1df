#include <algorithm>
#include <optional>

#include "core/base/divide.h"
#include "core/program/block_sizes.h"
#include "engine/base/engine_error.h"
#include "engine/base/planted.h"
#include "engine/kernels/matmul.h"
#include "engine/kernels/rows.h"
#include "engine/layers/layers.h"
#include "engine/layers/norm.h"
#include "engine/layers/vocabulary_loss.h"
#include "engine/layers/vocabulary_share.h"
#include "engine/layers/workspace.h"

namespace ptrain::layers {
namespace {

using program::kLogitsPadding;
using program::kLogitsRows;

// Final norm, head matrix and loss. Stash: x. Each of the ranks that share the matrix makes the
// logits of its part of the vocabulary, for all tokens; whole logits exist nowhere. Those without
// the stream have no norm.
class Head final : public Layer {
 public:
  Head(const model::Architecture& architecture, const model::LayerSpec& spec)
      : dtype_(architecture.dtype),
        compute_(spec.compute_dtype),
        hidden_(architecture.config.hidden_size),
        share_(architecture.head),
        matrix_(spec.parameters.size() - 1),
        loss_(architecture,
              architecture.parameters[static_cast<std::size_t>(spec.parameters.back())]),
        softcap_(architecture.decoder.final_softcap) {
    if (share_.has_rows())
      norm_.emplace(architecture.decoder, Places(architecture, spec), model::Role::kNorm,
                    model::Role::kNormBias);
  }

  Task forward(const Context& context, Tensor x, Tensor) const override {
    if (!context.stash.empty()) copy_tensor(x, context.stash[0]);
    co_return;
  }

  Task recompute(const Context&) const override { co_return; }
  Task remake(const Context&) const override { co_return; }

  Task backward_input(const Context& context, std::span<const GradientTarget> gradients, Tensor dy,
                      std::vector<WeightProduct>&, std::vector<Buffer>&,
                      LossSums& sums) const override {
    const Tensor x = norm_ ? context.stash[0] : Tensor();
    Workspace work(context, dtype_, share_);
    std::vector<Buffer> buffers;
    const Tensor scale = statistics(context, buffers);
    const Tensor normed = norm(context, x, scale, buffers);
    if (!share_.alone()) co_await exchange(share_.gather(normed));
    const Tensor dnormed = share_.alone() ? dy : work.scratch(hidden_);
    loss_and_gradients(context, normed, dnormed, gradients[matrix_], sums);
    if (planted(Bug::kHeadPartsNotSummed) && !norm_) kernels::set_zero(dnormed);
    if (!share_.alone()) co_await exchange(share_.sum(dnormed));
    if (norm_) norm_->backward(context, gradients, {x, scale, share_.own(dnormed), {}}, dy);
  }

  Task loss(const Context& context, Tensor x, LossSums& sums) const override {
    std::vector<Buffer> buffers;
    const Tensor normed = norm(context, x, statistics(context, buffers), buffers);
    if (!share_.alone()) co_await exchange(share_.gather(normed));
    each_chunk(context, normed, [&](std::int64_t begin, const Tensor& chunk, const Tensor& logits) {
      make_logits(context, chunk, logits);
      loss_.add(context, begin, logits, kernels::LogitsUse::kLossOnly, sums);
    });
  }

  Task logits(const Context& context, Tensor x, std::int64_t first, Tensor logits) const override {
    std::vector<Buffer> buffers;
    const Tensor normed = norm(context, x, statistics(context, buffers), buffers);
    if (!share_.alone()) co_await exchange(share_.gather(normed));
    const VocabularyPart& part = loss_.part();
    make_logits(context, normed.row_range(first, logits.rows),
                logits.columns(part.first(), part.size()));
    if (!share_.alone()) loss_.gather(context, logits);
  }

 private:
  // Room for what the norm keeps of the stream's rows.
  Tensor statistics(const Context& context, std::vector<Buffer>& buffers) const {
    if (!norm_) return {};
    return take_scratch(context.arena, dtype_, share_.own_rows(context.batch.num_tokens()),
                        norm_->statistics_cols(), buffers);
  }

  // Of the stream's rows, with room for those of the other ranks.
  Tensor norm(const Context& context, const Tensor& x, const Tensor& scale,
              std::vector<Buffer>& buffers) const {
    const Tensor normed =
        take_scratch(context.arena, compute_, context.batch.num_tokens(), hidden_, buffers);
    if (norm_) norm_->forward(context, x, share_.own(normed), scale);
    return normed;
  }

  void make_logits(const Context& context, const Tensor& normed, const Tensor& logits) const {
    const Tensor weight = loss_.part().rows(context.parameters[matrix_]);
    kernels::matmul(normed, weight, logits, {.transpose_b = true});
    if (softcap_ > 0) kernels::softcap(softcap_, logits);
  }

  // dnormed [T, H] and the matrix's gradient, a chunk of tokens at a time. The matrix is not queued
  // for backward_weight: that would keep the logits' gradient of all tokens.
  void loss_and_gradients(const Context& context, const Tensor& normed, const Tensor& dnormed,
                          const GradientTarget& matrix, LossSums& sums) const {
    const VocabularyPart& part = loss_.part();
    const Tensor weight = part.rows(context.parameters[matrix_]);
    const Tensor dweight = part.rows(matrix.tensor);
    if (dweight.rows < matrix.tensor.rows) begin_sum(matrix);  // of the rows that pad
    std::vector<Buffer> kept, rounded;
    each_chunk(context, normed, [&](std::int64_t begin, const Tensor& chunk, const Tensor& logits) {
      make_logits(context, chunk, logits);
      const Tensor capped = softcap_ > 0 ? copy_of(context, logits, kept) : Tensor();
      loss_.add(context, begin, logits, kernels::LogitsUse::kGradient, sums);
      if (softcap_ > 0) kernels::softcap_backward(softcap_, capped, logits);
      rounded.clear();
      const Tensor dlogits = itself_or_room(logits, compute_, context.arena, rounded);
      copy_tensor(logits, dlogits);
      kernels::matmul(dlogits, weight, dnormed.row_range(begin, chunk.rows));
      kernels::matmul(dlogits, chunk, dweight,
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
    const std::int64_t vocabulary = loss_.part().size();
    const std::int64_t stride = round_up(vocabulary, kLogitsPadding);
    std::vector<Buffer> buffers;
    const Tensor room = take_scratch(context.arena, wide_of(compute_),
                                     std::min(kLogitsRows, normed.rows), stride, buffers);
    for (std::int64_t begin = 0; begin < normed.rows; begin += kLogitsRows) {
      const std::int64_t rows = std::min(kLogitsRows, normed.rows - begin);
      f(begin, normed.row_range(begin, rows), room.row_range(0, rows).columns(0, vocabulary));
    }
  }

  DType dtype_, compute_;
  std::int64_t hidden_;
  VocabularyShare share_;
  std::optional<Norm> norm_;
  std::size_t matrix_;  // [V, H], in the layer's parameters
  VocabularyLoss loss_;
  double softcap_;
};

}  // namespace

std::unique_ptr<Layer> make_head(const model::Architecture& architecture) {
  return std::make_unique<Head>(architecture, architecture.layers.back());
}

}  // namespace ptrain::layers
