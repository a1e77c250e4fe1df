#include "core/program/temporary.h"

#include <algorithm>

#include "core/base/divide.h"
#include "core/program/keep.h"

namespace ptrain::program {
namespace {

// Of the engine: queries whose scores attention holds, and elements that their rows are padded to;
// rows whose sums wait to be rounded; rows whose logits exist, and what their columns are padded
// to.
constexpr std::int64_t kScoreRows = 64, kScorePadding = 16;
constexpr std::int64_t kRoundedRows = 256;
constexpr std::int64_t kLogitsRows = 256, kLogitsPadding = 64;

// Bytes of what the engine's layers take for the time of a call, in the order of their code.
class Scratch {
 public:
  explicit Scratch(const MemoryContext& context)
      : context_(context),
        tokens_(context.layout.micro_batch * context.sequence),
        wide_(size_of(context.architecture.dtype)),
        narrow_(size_of(context.architecture.compute_dtype)) {}

  std::int64_t forward(const model::LayerSpec& layer) const {
    const std::int64_t streams = 2 * stream();
    if (layer.kind != model::LayerKind::kBlock) return streams;
    return streams + dropped(layer) + std::max(attention_forward(), rounded_rows());
  }

  // Everything has its place in the stash, but for y, where it is made on the way to what is kept.
  std::int64_t recompute(const model::LayerSpec& layer) const {
    const bool runs_whole =
        context_.layout.recompute == recipe::Recompute::kFull && is_block(layer);
    if (!runs_whole) return stream();
    const std::int64_t y = decoder().norms_after ? stream() : 0;
    return stream() + std::max({attention_forward(), rounded_rows(), y});
  }

  std::int64_t backward(const model::LayerSpec& layer) const {
    if (layer.kind == model::LayerKind::kEmbedding) return stream();
    return layer.kind == model::LayerKind::kHead ? head_backward() : block_backward();
  }

 private:
  const recipe::Model& config() const { return context_.architecture.config; }
  const model::Decoder& decoder() const { return context_.architecture.decoder; }
  std::int64_t hidden() const { return config().hidden_size; }
  std::int64_t query() const { return config().num_attention_heads * config().head_dim; }
  std::int64_t qkv() const {
    return query() + 2 * config().num_key_value_heads * config().head_dim;
  }
  std::int64_t up() const { return config().intermediate_size * (decoder().gated ? 2 : 1); }
  bool rounds() const { return narrow_ != wide_; }
  static bool is_block(const model::LayerSpec& layer) {
    return layer.kind == model::LayerKind::kBlock;
  }
  std::int64_t in_wide(std::int64_t cols) const { return tokens_ * cols * wide_; }
  std::int64_t in_narrow(std::int64_t cols) const { return tokens_ * cols * narrow_; }
  std::int64_t stream() const { return in_wide(hidden()); }

  std::int64_t dropped(const model::LayerSpec& layer) const {
    std::int64_t bytes = 0;
    for (const model::StashTensor& tensor : layer.stash)
      if (tensor.stash_class != model::StashClass::kInput &&
          !keeps(keep_of(context_.layout.recompute), tensor))
        bytes += tokens_ * tensor.elements_per_token * size_of(tensor.dtype);
    return bytes;
  }

  std::int64_t scores() const {
    const std::int64_t n = context_.sequence;
    return std::min(kScoreRows, n) * round_up(n, kScorePadding) * wide_;
  }

  // Attention works in the wide dtype and its output is rounded afterwards.
  std::int64_t attention_output() const { return rounds() ? in_wide(query()) : 0; }
  std::int64_t attention_forward() const { return attention_output() + scores(); }
  std::int64_t attention_backward() const {
    const std::int64_t head = round_up(config().head_dim, kScorePadding);
    return attention_output() + 2 * scores() + 2 * context_.sequence * head * wide_;
  }

  // Of gate and up, the only products that are rounded.
  std::int64_t rounded_rows() const {
    return rounds() ? std::min(kRoundedRows, tokens_) * up() * wide_ : 0;
  }

  std::int64_t block_backward() const {
    const std::int64_t held = stream() + in_narrow(hidden()) + stream();  // dy, ddown, dx2
    const bool norms = decoder().norms_after;
    const std::int64_t through_norm = norms && rounds() ? stream() : 0;
    const std::int64_t mlp = in_wide(config().intermediate_size + hidden());
    const std::int64_t doutput = norms || rounds() ? in_narrow(hidden()) : 0;
    const std::int64_t dqkv = rounds() ? in_narrow(qkv()) : 0;
    const std::int64_t attention = dqkv + in_wide(query() + hidden()) + attention_backward();
    return held + std::max({through_norm, mlp, doutput + std::max(through_norm, attention)});
  }

  std::int64_t head_backward() const {
    const std::int64_t statistics = decoder().norm == model::NormKind::kLayerNorm ? 2 : 1;
    const std::int64_t rows = std::min(kLogitsRows, tokens_);
    const std::int64_t padded = round_up(config().vocab_size, kLogitsPadding);
    const std::int64_t capped =
        decoder().final_softcap > 0 ? rows * config().vocab_size * wide_ : 0;
    const std::int64_t rounded = rounds() ? rows * padded * narrow_ : 0;
    return stream() + in_wide(statistics) + in_narrow(hidden()) + rows * padded * wide_ + capped +
           rounded;
  }

  const MemoryContext& context_;
  std::int64_t tokens_, wide_, narrow_;
};

// What orthogonalising a matrix takes.
std::int64_t update_bytes(const model::Architecture& architecture) {
  std::int64_t most = 0;
  for (const model::ParameterSpec& parameter : architecture.parameters) {
    if (parameter.rule != model::UpdateRule::kMuon) continue;
    const std::int64_t rows = std::min(parameter.shape[0], parameter.shape[1]);
    most = std::max(most, 2 * (parameter.num_elements() + rows * rows));
  }
  return most * size_of(architecture.dtype);
}

}  // namespace

Bytes temporary_bytes(const MemoryContext& context) {
  const Scratch scratch(context);
  std::int64_t most = update_bytes(context.architecture);
  for (const model::LayerSpec& layer : context.architecture.layers)
    most =
        std::max({most, scratch.forward(layer), scratch.recompute(layer), scratch.backward(layer)});
  return {most};
}

}  // namespace ptrain::program
