#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/quantity.h"
#include "core/mesh/buffer_plan.h"
#include "core/mesh/layout.h"
#include "core/model/architecture.h"
#include "core/program/action.h"

namespace ptrain::program {

// What memory is held for. The engine's arena counts the same classes.
enum class MemoryClass : std::uint8_t {
  kParameters,
  kGradients,
  kOptimizer,
  kGather,
  kStash,
  kTemporary,
  kCommunication,
  kRuntime
};
inline constexpr int kNumMemoryClasses = 8;
std::string_view to_string(MemoryClass memory_class);

using BytesByClass = std::array<Bytes, kNumMemoryClasses>;

// All that the size of an action's memory depends on.
struct MemoryContext {
  const model::Architecture& architecture;
  const mesh::Layout& layout;
  std::span<const mesh::BufferPlan> buffers;
  std::int64_t sequence = 0;
};

// Held from start to end of training: master parameters, moments, gradients that live across
// micro-batches.
BytesByClass persistent_bytes(const MemoryContext& context);

// What one action takes and gives back. The rules:
//   UNSHARD gG      + gather: the whole buffer of G, where shard > 1
//   RESHARD gG      - the same
//   FORWARD lL mM   + stash: the tensors of L that `keep` names (all | input | none)
//   RECOMPUTE lL mM + stash: the tensors of L that are not its input
//   BACKWARD lL mM  - stash of (L, M); + gradients of each group it writes that has no full buffer
//   now REDUCE_GRAD gG  - gradients: the full buffer of G, where it does not live across
//   micro-batches
struct MemoryEffect {
  MemoryClass memory_class;
  Bytes taken;  // before the action runs
  Bytes given;  // when it has finished
};

// Peak bytes of each class while the program runs once, persistent bytes included.
// kTemporary, kCommunication and kRuntime are left 0: the engine reports them as measured.
BytesByClass peak_bytes(const Program& program, const MemoryContext& context);

}  // namespace ptrain::program
