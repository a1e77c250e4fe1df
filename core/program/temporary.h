#pragma once

#include "core/program/memory.h"

namespace ptrain::program {

// The most that a training step holds as kTemporary: the streams between layers, and the scratch of
// the layer or the update that needs most. On processors exact where a row is one document; shorter
// documents need less for attention.
Bytes temporary_bytes(const MemoryContext& context);

}  // namespace ptrain::program
