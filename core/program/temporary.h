#pragma once

#include "core/program/memory.h"

namespace ptrain::program {

// The most that a training step holds as kTemporary: the streams between layers (but for those of a
// pipeline), and the scratch of the layer or the update that needs most. On processors exact where
// a row is one document; shorter documents never need more. In a ring it is the most of both ways
// to cut rows (packing/context_split.h), of which the documents choose one.
Bytes temporary_bytes(const MemoryContext& context);

// Of these the scratch and streams of each layer, in order; 0 of those that the rank does not hold.
std::vector<std::int64_t> temporary_bytes_by_layer(const MemoryContext& context);

// What the products that the backward of a block queues read beside its stash, for one micro-batch:
// held from BACKWARD_INPUT to BACKWARD_WEIGHT.
std::int64_t queued_bytes(const MemoryContext& context, const model::LayerSpec& layer);

}  // namespace ptrain::program
