#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/checkpoint/item.h"

namespace ptrain::checkpoint {

// Bytes of copies of all tensors, each from a multiple of 8 bytes on; program::copy_bytes predicts
// them.
std::int64_t copy_bytes(const Items& items);

// Copies the tensors into `memory` and lets the items point there, so that they stay what they are
// now, whatever becomes of the originals.
void copy_tensors(Items& items, std::span<std::byte> memory, int threads = 1);

}  // namespace ptrain::checkpoint
