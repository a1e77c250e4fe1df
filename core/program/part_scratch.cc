#include "core/program/part_scratch.h"

#include <algorithm>

#include "core/base/divide.h"
#include "core/program/attention_scratch.h"
#include "core/program/block_sizes.h"

namespace ptrain::program {
namespace {

// Bytes of rows of all tokens, in the wide dtype and in that of products.
struct Room {
  explicit Room(const MemoryContext& context)
      : tokens(context.tokens()),
        wide(size_of(context.architecture.dtype)),
        narrow(size_of(context.architecture.compute_dtype)) {}
  std::int64_t in_wide(std::int64_t cols) const { return tokens * cols * wide; }
  std::int64_t in_narrow(std::int64_t cols) const { return tokens * cols * narrow; }
  // What is only there where products are rounded.
  std::int64_t if_rounded(std::int64_t bytes) const { return wide == narrow ? 0 : bytes; }
  std::int64_t tokens, wide, narrow;
};

}  // namespace

PartScratch latent_attention_scratch(const MemoryContext& context) {
  const Room of(context);
  const model::LatentSpec& latent = context.architecture.decoder.latent;
  const std::int64_t heads = context.architecture.config.num_attention_heads;
  const std::int64_t hidden = context.architecture.config.hidden_size;
  const std::int64_t head = latent.head_dim();
  const std::int64_t value = heads * latent.value_dim;
  const std::int64_t expanded = heads * latent.nope_dim + value;
  const AttentionScratch inside = attention_scratch(context);
  const std::int64_t output = of.if_rounded(of.in_wide(value));
  PartScratch scratch;
  scratch.forward = scratch.again = std::max(of.in_wide(expanded), output + inside.forward);
  scratch.kept = of.if_rounded(of.in_narrow(heads * head)) + of.in_narrow(latent.query_rank) +
                 of.in_narrow(expanded) + of.in_narrow(latent.key_value_rank + latent.rope_dim);
  scratch.backward =
      of.in_wide(value) + std::max({output + inside.backward, of.in_wide(latent.key_value_rank),
                                    of.in_wide(hidden + latent.query_rank)});
  return scratch;
}

PartScratch experts_scratch(const MemoryContext& context) {
  const Room of(context);
  const model::MoeSpec& moe = context.architecture.decoder.moe;
  const std::int64_t hidden = context.architecture.config.hidden_size;
  const std::int64_t chosen = moe.top_k * hidden;  // of all rows that experts work on
  const std::int64_t router =
      of.if_rounded(of.in_wide(hidden) + moe.num_experts * hidden * of.wide);
  const auto rounded = [&](std::int64_t rows, std::int64_t cols) {
    return of.if_rounded(std::min(kRoundedRows, rows) * cols * of.wide);
  };
  PartScratch scratch;
  scratch.again =
      std::max({router, of.in_narrow(chosen) + rounded(of.tokens * moe.top_k, 2 * moe.inner),
                moe.shared_inner > 0 ? rounded(of.tokens, 2 * moe.shared_inner) : 0});
  scratch.forward = std::max(scratch.again, of.in_wide(chosen));
  scratch.kept = 2 * of.in_narrow(chosen) + (moe.shared_inner > 0 ? of.in_narrow(hidden) : 0);
  const std::int64_t losses = context.layout.micro_batch * (moe.num_experts + 1) * of.wide;
  scratch.backward = of.in_wide(moe.top_k) +
                     std::max({of.in_wide(moe.top_k * moe.inner), of.in_wide(moe.shared_inner),
                               of.in_wide(chosen), losses, router});
  return scratch;
}

}  // namespace ptrain::program
