#include "core/program/attention_scratch.h"

#include <algorithm>
#include <unordered_map>

#include "core/base/divide.h"
#include "core/model/context_exchanges.h"
#include "core/packing/context_split.h"
#include "core/program/attention_bytes.h"

namespace ptrain::program {
namespace {

using packing::ContextPiece;
using packing::ContextPieces;
using packing::ContextSplit;

AttentionBytes bytes_of(const model::Architecture& architecture, DType compute_dtype) {
  const bool pairs = compute_dtype == DType::kBFloat16;
  const std::int64_t wide = size_of(architecture.dtype);
  const model::LatentSpec& latent = architecture.decoder.latent;
  if (latent.key_value_rank > 0) return {wide, latent.head_dim(), latent.value_dim, pairs};
  return {wide, architecture.config.head_dim, architecture.config.head_dim, pairs};
}

// A ring of ranks (engine/layers/ring_attention.cc), on `tokens` of each. The documents of a
// micro-batch decide how its rows are cut, so this is the most of both ways to cut whole rows:
// shorter documents are cut into pieces of these.
class RingScratch {
 public:
  RingScratch(const MemoryContext& context, const AttentionBytes& kernel, std::int64_t tokens)
      : kernel_(kernel),
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
    const std::int64_t inside = most_inside(&AttentionBytes::inside);
    if (ring_.size == 1) return inside;
    return std::max(inside, most_before(&AttentionBytes::before)) +
           2 * columns_.key_value * row_bytes_;
  }

  std::int64_t backward() const {
    const std::int64_t inside = most_inside(&AttentionBytes::inside_backward);
    if (ring_.size == 1) return inside;
    return std::max(inside, most_before(&AttentionBytes::before_backward)) +
           (5 * columns_.key_value + columns_.query) * row_bytes_;
  }

 private:
  using Ranks = std::vector<ContextPieces>;

  const ContextPieces& own_pieces(const Ranks& split) const {
    return split[static_cast<std::size_t>(ring_.rank)];
  }

  std::int64_t most_inside(std::int64_t (AttentionBytes::*bytes)(std::int64_t) const) const {
    std::int64_t most = 0;
    for (const Ranks& split : splits_)
      for (const ContextPiece& own : own_pieces(split))
        most = std::max(most, (kernel_.*bytes)(own.length()));
    return most;
  }

  std::int64_t most_before(std::int64_t (AttentionBytes::*bytes)(std::int64_t, std::int64_t)
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

  AttentionBytes kernel_;
  model::AttentionColumns columns_;
  model::AxisPlace ring_;
  std::int64_t row_bytes_;
  std::vector<Ranks> splits_;
};

}  // namespace

AttentionScratch attention_scratch(const MemoryContext& context, DType compute_dtype) {
  const AttentionBytes kernel = bytes_of(context.architecture, compute_dtype);
  if (context.layout.cp == 1)
    return {kernel.inside(context.sequence), kernel.inside_backward(context.sequence)};
  const int ulysses = context.architecture.ulysses.size;
  const std::int64_t tokens = context.tokens() * ulysses;
  const RingScratch ring(context, kernel, tokens);
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
