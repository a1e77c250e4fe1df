#include "core/program/part_scratch.h"

#include <algorithm>

#include "core/base/divide.h"
#include "core/program/attention_scratch.h"
#include "core/program/block_sizes.h"
#include "core/program/keep.h"

namespace ptrain::program {
namespace {

// Bytes of rows of tokens, in the wide dtype and in that of products.
struct Room {
  Room(const MemoryContext& context, DType compute_dtype, std::int64_t num_tokens)
      : tokens(num_tokens),
        wide(size_of(context.architecture.dtype)),
        narrow(size_of(compute_dtype)) {}
  std::int64_t in_wide(std::int64_t cols) const { return tokens * cols * wide; }
  std::int64_t in_narrow(std::int64_t cols) const { return tokens * cols * narrow; }
  // What is only there where products are rounded.
  std::int64_t if_rounded(std::int64_t bytes) const { return wide == narrow ? 0 : bytes; }
  std::int64_t rounded(std::int64_t rows, std::int64_t cols) const {
    return if_rounded(std::min(kRoundedRows, rows) * cols * wide);
  }
  std::int64_t tokens, wide, narrow;
};

PartScratch shared_experts_scratch(const MemoryContext& context, DType compute_dtype) {
  PartScratch scratch;
  const std::int64_t inner = context.architecture.decoder.moe.shared_inner;
  if (inner == 0) return scratch;
  const Room of(context, compute_dtype, context.tokens());
  scratch.gathered = gathered_bytes(context, compute_dtype);
  scratch.again = scratch.gathered + of.rounded(of.tokens, 2 * inner);
  scratch.forward = std::max(scratch.again, summed_bytes(context));
  scratch.kept = of.in_narrow(context.architecture.config.hidden_size);
  scratch.backward = of.in_wide(inner);
  return scratch;
}

// What routed experts take: `rows` may come for them, and the rank's own tokens chose `own`.
struct RoutedScratch {
  RoutedScratch(const MemoryContext& context, DType compute_dtype, Keep keep)
      : rows(context, compute_dtype, expert_rows(context)),
        own(context, compute_dtype,
            context.architecture.stream_rows(context.tokens()) *
                context.architecture.decoder.moe.top_k) {
    const model::Architecture& architecture = context.architecture;
    const std::int64_t hidden = architecture.config.hidden_size;
    const std::int64_t inner = architecture.decoder.moe.inner;
    const bool alone = architecture.experts.size() == 1;
    const auto if_shared = [alone](std::int64_t bytes) { return alone ? 0 : bytes; };
    const std::int64_t parts = architecture.experts.etp;
    multiply = rows.in_narrow(hidden) +
               std::max(if_shared(own.in_narrow(hidden)), rows.rounded(rows.tokens, 2 * inner));
    output = rows.in_wide(hidden) + if_shared(parts * own.in_wide(hidden));
    kept = 2 * rows.in_narrow(hidden);
    weights = 2 * rows.in_wide(1) + own.in_wide(1);
    backward = std::max({if_shared(2 * own.in_narrow(hidden) + own.in_wide(1)), rows.in_wide(inner),
                         rows.in_wide(hidden) + if_shared(parts * own.in_wide(hidden + 1))});
    // Of gate and up, and of their product, what no stash keeps.
    if (keep < Keep::kSelected) dropped += rows.in_narrow(2 * inner);
    if (keep < Keep::kAll) dropped += rows.in_narrow(inner);
  }
  Room rows, own;
  std::int64_t multiply = 0, output = 0, kept = 0, weights = 0, backward = 0, dropped = 0;
};

// What the ranks that share rows chose.
std::int64_t gathered_choices_bytes(const MemoryContext& context) {
  const int ranks = context.architecture.tensor.size * context.layout.cp;
  if (ranks == 1) return 0;
  return context.tokens() * context.layout.cp * context.architecture.decoder.moe.top_k *
         size_of(DType::kInt32);
}

}  // namespace

std::int64_t gathered_bytes(const MemoryContext& context, DType compute_dtype) {
  const model::Architecture& architecture = context.architecture;
  if (architecture.tensor.size == 1) return 0;
  return context.tokens() * architecture.config.hidden_size * size_of(compute_dtype);
}

std::int64_t summed_bytes(const MemoryContext& context) {
  const model::Architecture& architecture = context.architecture;
  if (architecture.tensor.size == 1) return 0;
  return context.tokens() * architecture.config.hidden_size * size_of(architecture.dtype);
}

PartScratch latent_attention_scratch(const MemoryContext& context, DType compute_dtype) {
  const Room of(context, compute_dtype, context.tokens());
  const model::LatentSpec& latent = context.architecture.decoder.latent;
  const std::int64_t heads = context.architecture.config.num_attention_heads;
  const std::int64_t hidden = context.architecture.config.hidden_size;
  const std::int64_t head = latent.head_dim();
  const std::int64_t value = heads * latent.value_dim;
  const std::int64_t expanded = heads * latent.nope_dim + value;
  const AttentionScratch inside = attention_scratch(context, compute_dtype);
  const std::int64_t output = of.if_rounded(of.in_wide(value));
  PartScratch scratch;
  scratch.gathered = gathered_bytes(context, compute_dtype);
  scratch.forward = scratch.again =
      std::max(scratch.gathered + of.in_wide(expanded), output + inside.forward);
  scratch.kept = of.if_rounded(of.in_narrow(heads * head)) + of.in_narrow(latent.query_rank) +
                 of.in_narrow(expanded) + of.in_narrow(latent.key_value_rank + latent.rope_dim);
  scratch.backward =
      of.in_wide(value) + std::max({output + inside.backward, of.in_wide(latent.key_value_rank),
                                    of.in_wide(hidden + latent.query_rank)});
  return scratch;
}

PartScratch experts_scratch(const MemoryContext& context, DType compute_dtype, Keep keep) {
  const Room of(context, compute_dtype, context.architecture.stream_rows(context.tokens()));
  const model::MoeSpec& moe = context.architecture.decoder.moe;
  const PartScratch shared = shared_experts_scratch(context, compute_dtype);
  const RoutedScratch routed(context, compute_dtype, keep);
  const std::int64_t hidden = context.architecture.config.hidden_size;
  const std::int64_t choices = gathered_choices_bytes(context);
  const std::int64_t router =
      of.if_rounded(of.in_wide(hidden) + moe.num_experts * hidden * of.wide);
  PartScratch scratch;
  scratch.again = std::max({router, routed.multiply, shared.again});
  scratch.forward =
      std::max({router, moe.capacity_factor > 0 ? choices : 0,
                routed.dropped + std::max({routed.multiply, shared.forward, routed.output})});
  scratch.kept = routed.kept + shared.kept;
  scratch.gathered = shared.gathered;
  const std::int64_t losses = context.layout.micro_batch * (moe.num_experts + 1) * of.wide;
  scratch.backward =
      routed.weights + std::max({routed.backward, shared.backward, choices, losses, router});
  return scratch;
}

}  // namespace ptrain::program
