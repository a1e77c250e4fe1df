#include "engine/execute/activations.h"

#include "engine/base/engine_error.h"

namespace ptrain::execute {

using program::Keep;
using program::MemoryClass;

void Stashes::fill(Entry& entry, int layer, std::int64_t num_tokens, Keep keep) {
  const auto& stash = architecture_.layers[static_cast<std::size_t>(layer)].stash;
  entry.buffers.resize(stash.size());
  entry.views.resize(stash.size());
  for (std::size_t i = 0; i < stash.size(); ++i) {
    if (!entry.views[i].empty() || !program::keeps(keep, stash[i])) continue;
    const std::int64_t rows = architecture_.rows_of(stash[i], num_tokens);
    const std::int64_t cols = stash[i].elements_per_token;
    entry.buffers[i] = Buffer(arena_, MemoryClass::kStash, rows * cols * size_of(stash[i].dtype));
    entry.views[i] = contiguous(entry.buffers[i].data(), stash[i].dtype, rows, cols);
  }
}

void Stashes::take(int layer, int micro_batch, std::int64_t num_tokens, Keep keep) {
  if (keep == Keep::kNone) return;
  const auto [entry, is_new] = entries_.try_emplace({layer, micro_batch});
  PT_CHECK(is_new);
  fill(entry->second, layer, num_tokens, keep);
}

void Stashes::complete(int layer, int micro_batch, std::int64_t num_tokens) {
  const auto entry = entries_.find({layer, micro_batch});
  PT_CHECK(entry != entries_.end());
  fill(entry->second, layer, num_tokens, Keep::kAll);
}

std::span<const Tensor> Stashes::views(int layer, int micro_batch) const {
  const auto entry = entries_.find({layer, micro_batch});
  if (entry == entries_.end()) return {};
  return entry->second.views;
}

void Stashes::give(int layer, int micro_batch) { entries_.erase({layer, micro_batch}); }

Tensor Streams::get(int layer, int micro_batch, std::int64_t rows) {
  Buffer& buffer = buffers_[{layer, micro_batch}];
  if (!buffer) buffer = fresh(rows);
  return view(buffer, rows);
}

std::int64_t Streams::bytes(std::int64_t rows) const {
  return rows * architecture_.config.hidden_size * size_of(architecture_.dtype);
}

Buffer Streams::fresh(std::int64_t rows) { return Buffer(arena_, memory_class_, bytes(rows)); }

Tensor Streams::view(const Buffer& buffer, std::int64_t rows) const {
  return contiguous(buffer.data(), architecture_.dtype, rows, architecture_.config.hidden_size);
}

void Streams::put(int layer, int micro_batch, Buffer buffer) {
  buffers_[{layer, micro_batch}] = std::move(buffer);
}

Buffer Streams::take(int layer, int micro_batch) {
  const auto found = buffers_.find({layer, micro_batch});
  PT_CHECK(found != buffers_.end());
  Buffer buffer = std::move(found->second);
  buffers_.erase(found);
  return buffer;
}

}  // namespace ptrain::execute
