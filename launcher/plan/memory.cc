#include "launcher/plan/memory.h"

#include <algorithm>

namespace ptrain::plan {

namespace {

// Resident size of a rank with libtorch's CPU half and MPI beside all that is counted: measured 130
// to 155 MiB on models from 0.1 to 500 MiB.
constexpr std::int64_t kRuntimeBytes = 145LL * 1024 * 1024;
// Tokens whose logits the loss holds at a time, and queries whose scores attention does.
constexpr std::int64_t kLossChunkRows = 256;
constexpr std::int64_t kAttentionRows = 64;

// What a block makes and does not keep.
std::int64_t dropped_per_token(const program::MemoryContext& context) {
  const program::Keep keep = program::keep_of(context.layout.recompute);
  std::int64_t most = 0;
  for (const auto& layer : context.architecture.layers) {
    std::int64_t elements = 0;
    for (const auto& tensor : layer.stash)
      if (!program::keeps(keep, tensor)) elements += tensor.elements_per_token;
    most = std::max(most, elements);
  }
  return most;
}

// The scratch of the layer that needs most, in elements: a block's forward (its input and output,
// and what it does not keep), a block's backward (gradients of its edge and of the widest tensor
// inside), or the head's. Where matrices multiply another dtype, copies of some of these beside it.
std::int64_t temporary_elements(const program::MemoryContext& context) {
  const auto& config = context.architecture.config;
  const std::int64_t tokens = context.layout.micro_batch * context.sequence;
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t queries = config.num_attention_heads * config.head_dim;
  const std::int64_t scores = kAttentionRows * context.sequence;
  const std::int64_t forward = tokens * (2 * hidden + dropped_per_token(context)) + scores;
  const std::int64_t backward =
      tokens * (4 * hidden + std::max(config.intermediate_size, queries)) +
      2 * (scores + context.sequence * config.head_dim);
  const std::int64_t rounded = context.architecture.compute_dtype == context.architecture.dtype
                                   ? 0
                                   : tokens * (hidden + 2 * queries);
  const std::int64_t head =
      tokens * (2 * hidden + 1) + std::min(tokens, kLossChunkRows) * config.vocab_size;
  return std::max({forward, backward, head}) + rounded;
}

// What the largest matrix that Muon orthogonalises takes.
std::int64_t optimizer_elements(const model::Architecture& architecture) {
  std::int64_t most = 0;
  for (const auto& parameter : architecture.parameters) {
    if (parameter.rule != model::UpdateRule::kMuon) continue;
    const std::int64_t rows = std::min(parameter.shape[0], parameter.shape[1]);
    most = std::max(most, 2 * (parameter.num_elements() + rows * rows));
  }
  return most;
}

}  // namespace

void add_estimates(program::BytesByClass& bytes, const program::MemoryContext& context) {
  using program::MemoryClass;
  const std::int64_t elements =
      std::max(temporary_elements(context), optimizer_elements(context.architecture));
  bytes[static_cast<std::size_t>(MemoryClass::kTemporary)] +=
      Bytes{elements * size_of(context.architecture.dtype)};
  bytes[static_cast<std::size_t>(MemoryClass::kRuntime)] += Bytes{kRuntimeBytes};
}

}  // namespace ptrain::plan
