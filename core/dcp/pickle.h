#pragma once

#include <cstddef>
#include <span>

#include "core/base/result.h"
#include "core/dcp/tree.h"

namespace ptrain::dcp {

struct PickleLimits {
  std::size_t nodes = std::size_t{1} << 28;
  int depth = 100;
};

// Reads one pickle of protocol 0 to 5 that uses the opcodes of opcode.h. The result looks into
// `bytes`.
Result<Tree> read_pickle(std::span<const std::byte> bytes, const PickleLimits& limits = {});

}  // namespace ptrain::dcp
