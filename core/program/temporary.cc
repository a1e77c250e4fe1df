#include "core/program/temporary.h"

#include <algorithm>
#include <map>

#include "core/base/divide.h"
#include "core/mesh/stages.h"
#include "core/program/attention_scratch.h"
#include "core/program/block_sizes.h"
#include "core/program/keep.h"
#include "core/program/part_scratch.h"

namespace ptrain::program {
namespace {

// Bytes of what the engine's layers take for the time of a call, in the order of their code; of
// those that multiply in `compute_dtype`.
class Scratch {
 public:
  Scratch(const MemoryContext& context, DType compute_dtype)
      : context_(context),
        compute_dtype_(compute_dtype),
        attention_scratch_(attention_scratch(context, compute_dtype)),
        recompute_(mesh::recompute_of_layers(context.layout,
                                             static_cast<int>(context.architecture.layers.size()))),
        tokens_(context.tokens()),
        wide_(size_of(context.architecture.dtype)),
        narrow_(size_of(compute_dtype)) {}

  std::int64_t forward(const model::LayerSpec& layer) const {
    const std::int64_t streams = 2 * own_stream();
    if (layer.kind == model::LayerKind::kEmbedding)
      return std::max(streams, own_stream() + looked_up());
    if (layer.kind == model::LayerKind::kHead) return streams;
    return streams + dropped(layer) + std::max(compute_forward(layer), summed());
  }

  // Everything has its place in the stash, but for y, where it is made on the way to what is kept.
  std::int64_t recompute(const model::LayerSpec& layer) const {
    const bool runs_whole = recompute_of(layer) == recipe::Recompute::kFull && is_block(layer);
    if (!runs_whole) return own_stream();
    const std::int64_t y = decoder().norms_after ? stream() + summed() : 0;
    return own_stream() + std::max({attention(layer).again, summed(), mlp(layer).again, y});
  }

  std::int64_t backward(const model::LayerSpec& layer) const {
    if (layer.kind == model::LayerKind::kEmbedding) return own_stream() + looked_up();
    return layer.kind == model::LayerKind::kHead ? head_backward() : block_backward(layer);
  }

  std::int64_t queued(const model::LayerSpec& layer) const {
    const PartScratch of_mlp = mlp(layer), of_attention = attention(layer);
    return of_mlp.kept + of_mlp.gathered + stream() + doutput() + of_attention.kept +
           of_attention.gathered;
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
  recipe::Recompute recompute_of(const model::LayerSpec& layer) const {
    return recompute_[static_cast<std::size_t>(layer.index)];
  }
  static bool is_block(const model::LayerSpec& layer) {
    return layer.kind == model::LayerKind::kBlock;
  }
  std::int64_t in_wide(std::int64_t cols) const { return tokens_ * cols * wide_; }
  std::int64_t in_narrow(std::int64_t cols) const { return tokens_ * cols * narrow_; }
  std::int64_t stream() const {
    return context_.architecture.stream_rows(tokens_) * hidden() * wide_;
  }
  bool shares() const { return context_.architecture.tensor.size > 1; }
  std::int64_t gathered() const { return gathered_bytes(context_, compute_dtype_); }
  std::int64_t summed() const { return summed_bytes(context_); }
  // Rows of all tokens, where ranks share the embedding's matrix.
  std::int64_t looked_up() const {
    return context_.architecture.embedding.size > 1 ? in_wide(hidden()) : 0;
  }
  // Where streams are temporary.
  std::int64_t own_stream() const { return context_.layout.num_stages() > 1 ? 0 : stream(); }

  // But for what experts work on, which is taken later (part_scratch.cc).
  std::int64_t dropped(const model::LayerSpec& layer) const {
    std::int64_t bytes = 0;
    for (const model::StashTensor& tensor : layer.stash)
      if (tensor.stash_class != model::StashClass::kInput &&
          tensor.rows != model::StashRows::kExperts && !keeps(keep_of(recompute_of(layer)), tensor))
        bytes += context_.architecture.rows_of(tensor, tokens_) * tensor.elements_per_token *
                 size_of(tensor.dtype);
    return bytes;
  }

  // Attention works in the wide dtype and its output is rounded afterwards.
  std::int64_t attention_output() const { return rounds() ? in_wide(query()) : 0; }

  // Of gate and up, the only products that are rounded.
  std::int64_t rounded_rows() const {
    return rounds() ? std::min(kRoundedRows, tokens_) * up() * wide_ : 0;
  }

  PartScratch attention(const model::LayerSpec&) const {
    if (decoder().latent.key_value_rank > 0)
      return latent_attention_scratch(context_, compute_dtype_);
    PartScratch scratch;
    scratch.forward = scratch.again =
        std::max(gathered(), attention_output() + attention_scratch_.forward);
    scratch.kept = dqkv();
    scratch.gathered = gathered();
    scratch.backward = in_wide(query()) + attention_output() + attention_scratch_.backward;
    return scratch;
  }

  PartScratch mlp(const model::LayerSpec& layer) const {
    if (decoder().experts_in(layer.index - 1))
      return experts_scratch(context_, compute_dtype_, keep_of(recompute_of(layer)));
    PartScratch scratch;
    scratch.forward = scratch.again = gathered() + rounded_rows();
    scratch.kept = in_narrow(hidden());
    scratch.gathered = gathered();
    scratch.backward = std::max(in_wide(config().intermediate_size), through_norm());
    return scratch;
  }

  // Up to what down reads.
  std::int64_t compute_forward(const model::LayerSpec& layer) const {
    return std::max({attention(layer).forward, summed(), mlp(layer).forward});
  }

  std::int64_t through_norm() const { return decoder().norms_after && rounds() ? stream() : 0; }
  std::int64_t doutput() const {
    return decoder().norms_after || rounds() || shares() ? in_narrow(hidden()) : 0;
  }
  std::int64_t dqkv() const { return rounds() ? in_narrow(qkv()) : 0; }

  std::int64_t block_backward(const model::LayerSpec& layer) const {
    const PartScratch of_mlp = mlp(layer), of_attention = attention(layer);
    const std::int64_t held = own_stream() + stream() + of_mlp.kept;  // dy, dx2
    const std::int64_t after_mlp =
        of_mlp.gathered + doutput() +
        std::max(through_norm(),
                 of_attention.kept +
                     std::max(in_wide(hidden()) + of_attention.backward, of_attention.gathered));
    return held + std::max(in_wide(hidden()) + of_mlp.backward, after_mlp);
  }

  std::int64_t head_backward() const {
    const model::VocabularyPlace& head = context_.architecture.head;
    const std::int64_t statistics = decoder().norm == model::NormKind::kLayerNorm ? 2 : 1;
    const std::int64_t norm =
        head.has_stream() ? context_.architecture.stream_rows(tokens_) * statistics * wide_ : 0;
    const std::int64_t gradient = head.size > 1 ? in_wide(hidden()) : 0;
    return own_stream() + norm + in_narrow(hidden()) + gradient + logits();
  }

  std::int64_t head_rows() const { return context_.architecture.num_head_rows(); }

  // A chunk of them, beside what the chunk before rounded.
  std::int64_t logits() const {
    const std::int64_t rows = std::min(kLogitsRows, tokens_);
    const std::int64_t second_rows = std::min(kLogitsRows, tokens_ - rows);
    const std::int64_t padded = round_up(head_rows(), kLogitsPadding);
    const std::int64_t rounded = rounds() ? rows * padded * narrow_ : 0;
    const std::int64_t first = capped_row() * rows + std::max(rounded, rows * statistics_of_row());
    const std::int64_t second = second_rows * (capped_row() + statistics_of_row()) + rounded;
    return rows * padded * wide_ + std::max(first, second);
  }

  std::int64_t capped_row() const { return decoder().final_softcap > 0 ? head_rows() * wide_ : 0; }

  // What the parts of a vocabulary know of it, in float64.
  std::int64_t statistics_of_row() const {
    const int parts = context_.architecture.head.size;
    return parts == 1 ? 0 : parts * kPartStatistics * size_of(DType::kFloat64);
  }

  const MemoryContext& context_;
  DType compute_dtype_;
  AttentionScratch attention_scratch_;
  std::vector<recipe::Recompute> recompute_;  // by layer
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

std::int64_t queued_bytes(const MemoryContext& context, const model::LayerSpec& layer) {
  return Scratch(context, layer.compute_dtype).queued(layer);
}

std::vector<std::int64_t> temporary_bytes_by_layer(const MemoryContext& context) {
  std::vector<std::int64_t> bytes;
  std::map<DType, Scratch> by_dtype;
  for (const model::LayerSpec& layer : context.architecture.layers) {
    bytes.push_back(0);
    if (!layer.held) continue;
    const DType dtype = layer.compute_dtype;
    const Scratch& scratch = by_dtype.try_emplace(dtype, context, dtype).first->second;
    bytes.back() =
        std::max({scratch.forward(layer), scratch.recompute(layer), scratch.backward(layer)});
  }
  return bytes;
}

Bytes temporary_bytes(const MemoryContext& context) {
  const std::int64_t of_layers = std::ranges::max(temporary_bytes_by_layer(context));
  return {std::max(update_bytes(context.architecture), of_layers)};
}

}  // namespace ptrain::program
