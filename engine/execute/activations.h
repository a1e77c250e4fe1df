#pragma once

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/model/architecture.h"
#include "core/program/keep.h"
#include "engine/base/arena.h"
#include "engine/base/tensor.h"

namespace ptrain::execute {

// The tensors that wait between a forward and its backward, by (layer, micro-batch).
class Stashes {
 public:
  Stashes(const model::Architecture& architecture, Arena& arena)
      : architecture_(architecture), arena_(arena) {}

  // Takes what `keep` names; entries that are not kept stay empty views.
  void take(int layer, int micro_batch, std::int64_t num_tokens, program::Keep keep);
  // Takes the entries that are still empty (recomputation).
  void complete(int layer, int micro_batch, std::int64_t num_tokens);
  // Views in LayerSpec::stash order; no views where nothing was taken.
  std::span<const Tensor> views(int layer, int micro_batch) const;
  void give(int layer, int micro_batch);

 private:
  struct Entry {
    std::vector<Buffer> buffers;
    std::vector<Tensor> views;
  };
  void fill(Entry& entry, int layer, std::int64_t num_tokens, program::Keep keep);

  const model::Architecture& architecture_;
  Arena& arena_;
  std::map<std::pair<int, int>, Entry> entries_;
};

// The streams of one direction: [stream rows, hidden] matrices that wait, by the layer that reads
// them next and micro-batch.
class Streams {
 public:
  Streams(const model::Architecture& architecture, Arena& arena, program::MemoryClass memory_class)
      : architecture_(architecture), arena_(arena), memory_class_(memory_class) {}

  // What waits for the layer; where nothing does, a matrix to write it into.
  Tensor get(int layer, int micro_batch, std::int64_t rows);
  Buffer fresh(std::int64_t rows);
  Tensor view(const Buffer& buffer, std::int64_t rows) const;
  std::int64_t bytes(std::int64_t rows) const;
  void put(int layer, int micro_batch, Buffer buffer);
  // Takes out what waits for the layer.
  Buffer take(int layer, int micro_batch);
  void give(int layer, int micro_batch) { buffers_.erase({layer, micro_batch}); }

 private:
  const model::Architecture& architecture_;
  Arena& arena_;
  program::MemoryClass memory_class_;
  std::map<std::pair<int, int>, Buffer> buffers_;
};

}  // namespace ptrain::execute
