#include "launcher/plan/memory.h"

#include <algorithm>

namespace ptrain::plan {

namespace {

// Resident size of a rank with libtorch's CPU half and MPI before it allocates anything: measured
// 190 MiB.
constexpr std::int64_t kRuntimeBytes = 190LL * 1024 * 1024;
// Rows of logits that the loss works on at a time.
constexpr std::int64_t kLossChunkRows = 512;

}  // namespace

void add_estimates(program::BytesByClass& bytes, const program::MemoryContext& context) {
  const std::int64_t tokens = context.layout.micro_batch * context.sequence;
  std::int64_t widest = 0;
  for (const auto& layer : context.architecture.layers) {
    std::int64_t per_token = 0;
    for (const auto& tensor : layer.stash)
      per_token += tensor.elements_per_token * size_of(tensor.dtype);
    widest = std::max(widest, per_token);
  }
  // Going backward, every kept tensor of the layer has a gradient of its size; so has the layer's
  // edge.
  const auto& config = context.architecture.config;
  const std::int64_t element = size_of(context.architecture.dtype);
  const std::int64_t layer_bytes = tokens * (widest + 2 * config.hidden_size * element);
  const std::int64_t loss_bytes = std::min(tokens, kLossChunkRows) * config.vocab_size * element;
  using program::MemoryClass;
  bytes[static_cast<std::size_t>(MemoryClass::kTemporary)] +=
      Bytes{std::max(layer_bytes, loss_bytes)};
  bytes[static_cast<std::size_t>(MemoryClass::kRuntime)] += Bytes{kRuntimeBytes};
}

}  // namespace ptrain::plan
