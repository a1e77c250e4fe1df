#include "core/program/attention_scratch.h"

#include <algorithm>
#include <unordered_map>

#include "core/base/divide.h"
#include "core/model/context_exchanges.h"
#include "core/packing/context_split.h"
#include "core/program/block_sizes.h"

namespace ptrain::program {
namespace {

using packing::ContextPiece;
using packing::ContextPieces;
using packing::ContextSplit;

// What one call of a kernel takes, in the order of engine/kernels.
class KernelScratch {
 public:
  explicit KernelScratch(const model::Architecture& architecture)
      : wide_(size_of(architecture.dtype)), head_(architecture.config.head_dim), value_(head_) {
    const model::LatentSpec& latent = architecture.decoder.latent;
    if (latent.key_value_rank == 0) return;
    head_ = latent.head_dim();
    value_ = latent.value_dim;
  }

  // Inside a piece of n tokens.
  std::int64_t inside(std::int64_t n) const { return scores(n, n); }
  std::int64_t inside_backward(std::int64_t n) const {
    return 2 * scores(n, n) + n * (padded(head_) + padded(value_)) * wide_;
  }
  // Between a piece's queries and the keys of one before it.
  std::int64_t before(std::int64_t queries, std::int64_t keys) const {
    const std::int64_t rows = std::min(kScoreRows, queries);
    return scores(queries, keys) + rows * (padded(value_) + padded(1)) * wide_;
  }
  std::int64_t before_backward(std::int64_t queries, std::int64_t keys) const {
    return 2 * scores(queries, keys);
  }

 private:
  static std::int64_t padded(std::int64_t cols) { return round_up(cols, kScorePadding); }
  std::int64_t scores(std::int64_t queries, std::int64_t keys) const {
    return std::min(kScoreRows, queries) * padded(keys) * wide_;
  }
  std::int64_t wide_, head_, value_;
};

// A ring of ranks (engine/layers/ring_attention.cc), on `tokens` of each. The documents of a
// micro-batch decide how its rows are cut, so this is the most of both ways to cut whole rows:
// shorter documents are cut into pieces of these.
class RingScratch {
 public:
  RingScratch(const MemoryContext& context, std::int64_t tokens)
      : kernel_(context.architecture),
        columns_(model::ulysses_columns(context.architecture)),
        ring_(context.architecture.ring),
        row_bytes_(tokens * size_of(context.architecture.dtype)) {
    std::vector<std::int64_t> ends;
    for (std::int64_t row = 1; row <= context.layout.micro_batch; ++row)
      ends.push_back(row * context.sequence);
    for (const ContextSplit split : {ContextSplit::kPerDocument, ContextSplit::kPerRow})
      if (packing::can_split(ends, ring_.size, split))
        splits_.push_back(packing::split_row(ends, ring_.size, split));
  }

  std::int64_t forward() const {
    const std::int64_t inside = most_inside(&KernelScratch::inside);
    if (ring_.size == 1) return inside;
    return std::max(inside, most_before(&KernelScratch::before)) +
           2 * columns_.key_value * row_bytes_;
  }

  std::int64_t backward() const {
    const std::int64_t inside = most_inside(&KernelScratch::inside_backward);
    if (ring_.size == 1) return inside;
    return std::max(inside, most_before(&KernelScratch::before_backward)) +
           (5 * columns_.key_value + columns_.query) * row_bytes_;
  }

 private:
  using Ranks = std::vector<ContextPieces>;

  const ContextPieces& own_pieces(const Ranks& split) const {
    return split[static_cast<std::size_t>(ring_.rank)];
  }

  std::int64_t most_inside(std::int64_t (KernelScratch::*bytes)(std::int64_t) const) const {
    std::int64_t most = 0;
    for (const Ranks& split : splits_)
      for (const ContextPiece& own : own_pieces(split))
        most = std::max(most, (kernel_.*bytes)(own.length()));
    return most;
  }

  std::int64_t most_before(std::int64_t (KernelScratch::*bytes)(std::int64_t, std::int64_t)
                               const) const {
    std::int64_t most = 0;
    for (const Ranks& split : splits_) {
      const std::unordered_map<int, ContextPieces> keys = by_document(split);
      for (const ContextPiece& own : own_pieces(split))
        for (const ContextPiece& key : keys.at(own.document))
          if (key.begin < own.begin)
            most = std::max(most, (kernel_.*bytes)(own.length(), key.length()));
    }
    return most;
  }

  // Of all ranks: thousands of rows have as many documents.
  static std::unordered_map<int, ContextPieces> by_document(const Ranks& split) {
    std::unordered_map<int, ContextPieces> all;
    for (const ContextPieces& pieces : split)
      for (const ContextPiece& piece : pieces) all[piece.document].push_back(piece);
    return all;
  }

  KernelScratch kernel_;
  model::AttentionColumns columns_;
  model::AxisPlace ring_;
  std::int64_t row_bytes_;
  std::vector<Ranks> splits_;
};

}  // namespace

AttentionScratch attention_scratch(const MemoryContext& context) {
  const KernelScratch kernel(context.architecture);
  if (context.layout.cp == 1)
    return {kernel.inside(context.sequence), kernel.inside_backward(context.sequence)};
  const int ulysses = context.architecture.ulysses.size;
  const std::int64_t tokens = context.tokens() * ulysses;
  const RingScratch ring(context, tokens);
  const AttentionScratch inside{ring.forward(), ring.backward()};
  if (ulysses == 1) return inside;
  // engine/layers/context_attention.cc, in its order.
  const model::AttentionColumns columns = model::ulysses_columns(context.architecture);
  const std::int64_t row_bytes = tokens * size_of(context.architecture.dtype);
  const std::int64_t qkv = columns.all() * row_bytes, output = columns.output * row_bytes;
  const std::int64_t given = qkv + 2 * output;
  return {std::max({2 * qkv, qkv + output + inside.forward, 2 * output}),
          std::max({2 * given, given + std::max(inside.backward, qkv), 2 * qkv})};
}

}  // namespace ptrain::program
