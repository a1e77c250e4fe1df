#pragma once

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/model/architecture.h"
#include "core/program/keep.h"
#include "engine/base/arena.h"
#include "engine/base/tensor.h"
#include "engine/layers/layer.h"

namespace ptrain::execute {

// The tensors that wait between a forward and its backward, by (layer, micro-batch).
class Stashes {
 public:
  Stashes(const model::Architecture& architecture, Arena& arena)
      : architecture_(architecture), arena_(arena) {}

  // Takes what `keep` names, but for what a layer takes itself (late); what is not kept or not
  // taken yet stays an empty view.
  void take(int layer, int micro_batch, std::int64_t num_tokens, program::Keep keep);
  // Takes the entries that are still empty (recomputation).
  void complete(int layer, int micro_batch, std::int64_t num_tokens);
  // Views in LayerSpec::stash order; no views where nothing was taken.
  std::span<const Tensor> views(int layer, int micro_batch) const;
  // Null where nothing was taken.
  layers::LateStash* late(int layer, int micro_batch);
  void give(int layer, int micro_batch);
  // Gives back what these products, which make the gradients of weights, do not read.
  void keep_for_weights(int layer, int micro_batch,
                        std::span<const layers::WeightProduct> products);

 private:
  struct Entry final : layers::LateStash {
    Entry(const model::LayerSpec& of_layer, Arena& in_arena)
        : spec(of_layer), arena(in_arena), buffers(spec.stash.size()), views(buffers.size()) {}
    Tensor take(std::size_t index, std::int64_t rows) override;

    const model::LayerSpec& spec;
    Arena& arena;
    program::Keep keep = program::Keep::kNone;
    std::vector<Buffer> buffers;
    std::vector<Tensor> views;
  };
  void fill(Entry& entry, std::int64_t num_tokens, program::Keep keep);

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
