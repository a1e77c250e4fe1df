#include "engine/execute/activations.h"

#include "engine/base/engine_error.h"
#include "engine/execute/queued_products.h"

namespace ptrain::execute {

using program::Keep;
using program::MemoryClass;

Tensor Stashes::Entry::take(std::size_t index, std::int64_t rows) {
  const model::StashTensor& tensor = spec.stash[index];
  if (!program::keeps(keep, tensor)) return {};
  PT_CHECK(views[index].empty());
  const std::int64_t cols = tensor.elements_per_token;
  buffers[index] = Buffer(arena, MemoryClass::kStash, rows * cols * size_of(tensor.dtype));
  views[index] = contiguous(buffers[index].data(), tensor.dtype, rows, cols);
  return views[index];
}

void Stashes::fill(Entry& entry, std::int64_t num_tokens, Keep keep) {
  entry.keep = keep;
  for (std::size_t i = 0; i < entry.views.size(); ++i) {
    const model::StashTensor& tensor = entry.spec.stash[i];
    if (entry.views[i].empty() && tensor.rows != model::StashRows::kExperts)
      entry.take(i, architecture_.rows_of(tensor, num_tokens));
  }
}

void Stashes::take(int layer, int micro_batch, std::int64_t num_tokens, Keep keep) {
  if (keep == Keep::kNone) return;
  const auto& spec = architecture_.layers[static_cast<std::size_t>(layer)];
  const auto [entry, is_new] = entries_.try_emplace({layer, micro_batch}, spec, arena_);
  PT_CHECK(is_new);
  fill(entry->second, num_tokens, keep);
}

void Stashes::complete(int layer, int micro_batch, std::int64_t num_tokens) {
  const auto entry = entries_.find({layer, micro_batch});
  PT_CHECK(entry != entries_.end());
  fill(entry->second, num_tokens, Keep::kAll);
}

std::span<const Tensor> Stashes::views(int layer, int micro_batch) const {
  const auto entry = entries_.find({layer, micro_batch});
  if (entry == entries_.end()) return {};
  return entry->second.views;
}

layers::LateStash* Stashes::late(int layer, int micro_batch) {
  const auto entry = entries_.find({layer, micro_batch});
  return entry == entries_.end() ? nullptr : &entry->second;
}

void Stashes::give(int layer, int micro_batch) { entries_.erase({layer, micro_batch}); }

void Stashes::keep_for_weights(int layer, int micro_batch,
                               std::span<const layers::WeightProduct> products) {
  const auto found = entries_.find({layer, micro_batch});
  PT_CHECK(found != entries_.end());
  Entry& entry = found->second;
  for (std::size_t i = 0; i < entry.views.size(); ++i) {
    if (architecture_.is_for_weights(entry.spec.stash[i])) continue;
    PT_CHECK(!reads(products, entry.views[i]));
    entry.buffers[i] = Buffer();
    entry.views[i] = Tensor();
  }
}

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
