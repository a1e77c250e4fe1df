#pragma once

#include <span>

#include "core/mesh/layout.h"
#include "core/model/architecture.h"
#include "core/program/passes/draft.h"
#include "core/program/reads.h"
#include "core/program/schedule.h"

namespace ptrain::program {

struct PassContext {
  const model::Architecture& architecture;
  const mesh::Layout& layout;
};

// The passes in their order. Each is pure; each relies on those before it and on no later one.

// Cells to one FORWARD or BACKWARD a layer. `train`: forwards keep their stash.
Draft lay_segments(std::span<const Cell> cells, bool train, const PassContext& context);

// Recomputation: blocks keep only their input (full), or what only products and attention can make
// again (selective), and make the rest again right before their backward.
Draft add_recompute(Draft draft, const PassContext& context);

// UNSHARD and RESHARD of each group around its uses, `prefetch` layers ahead (ZeRO 3), or once
// around all uses of the step (ZeRO 1 and 2).
Draft add_gathers(Draft draft, const PassContext& context);

// REDUCE_GRAD of each group over shard, then dp: once, after the last gradient. Where only the
// shard's gradients outlive a micro-batch (ZeRO 2 and 3), after each over shard, and over dp once,
// with the last. Marks which backwards add to gradients that exist.
Draft add_reduction(Draft draft, const PassContext& context);

// GRAD_NORM and one OPTIMIZER a group.
Draft add_optimizer(Draft draft, const PassContext& context);

// FETCH of each group's state before its OPTIMIZER, as far ahead as the ring has buffers, and
// OFFLOAD after it, where the layout offloads state.
Draft add_offload(Draft draft, const PassContext& context);

}  // namespace ptrain::program
