#pragma once

#include <span>
#include <vector>

#include "core/mesh/group_mesh.h"
#include "core/model/architecture.h"
#include "core/program/passes/draft.h"
#include "core/program/pipeline.h"
#include "core/program/reads.h"

namespace ptrain::program {

struct PassContext {
  const model::Architecture& architecture;
  const mesh::Layout& layout;
};

// The passes in their order. Each is pure; each relies on those before it and on no later one.

// Cells of `pipeline` to one FORWARD, BACKWARD or BACKWARD_INPUT for each layer of their stages,
// and a BACKWARD_WEIGHT for each block: the ends of a model queue nothing. An S is the BACKWARD of
// the head alone. A spread embedding comes before all cells, and goes back behind all of them.
// `train`: forwards keep their stash; else an S is a FORWARD.
Draft lay_segments(std::span<const schedule::Cell> cells, const Pipeline& pipeline, bool train,
                   const PassContext& context);

// Recomputation: blocks keep only their input (full), or what only products and attention can make
// again (selective), and make the rest again right before their backward.
Draft add_recompute(Draft draft, const PassContext& context);

// UNSHARD and RESHARD of each group around its uses, `prefetch` layers ahead (ZeRO 3), or once
// around all uses of the step (ZeRO 1 and 2).
Draft add_gathers(Draft draft, const PassContext& context);

// REDUCE_GRAD of each group over shard, then dp: once, after the last gradient. Where only the
// shard's gradients outlive a micro-batch (ZeRO 2 and 3), after each over shard, and over dp once,
// with the last.
Draft add_reduction(Draft draft, const PassContext& context);

// SEND and RECV of the streams that pass from a pipeline rank to another. A send waits for nobody;
// its stream is given back one cell later or, where that need not be so yet, before the first cell
// that cannot begin before the receiver is ready.
Draft add_transfers(Draft draft, const Pipeline& pipeline, int rank);

// By group: whether tensor ranks hold copies of some of it, each with a part of the gradient.
std::vector<bool> groups_summed(const model::Architecture& architecture);
// EXCHANGE kind=sum_gradients axis=tp of those groups, once a step, behind all else that adds to
// them.
Draft add_tensor_sums(Draft draft, const PassContext& context);

// SYNC_TIED where a tied head and the embedding are on two pipeline ranks, of which `rank` is one.
// Where both are spread each rank has the same rows of them, and there is nothing to add up.
Draft add_tied_sum(Draft draft, const Pipeline& pipeline, int rank, const PassContext& context);

// By group: the action that adds to or sums up its gradients last; -1: none does. A sum counts
// before a backward.
std::vector<int> last_sums(const Draft& draft, const model::Architecture& architecture);

// GRAD_NORM, and one OPTIMIZER for each group that the draft's layers read.
Draft add_optimizer(Draft draft, const PassContext& context);

// FETCH of each group's state before its OPTIMIZER, as far ahead as the ring has buffers, and
// OFFLOAD after it, where the layout offloads state.
Draft add_offload(Draft draft, const PassContext& context);

// Cuts the calls that need other ranks of an axis into segments with EXCHANGE between them
// (segments.h). Last, so that the passes before see calls as one action; a pass that overlaps or
// moves segments comes behind it.
Draft add_exchanges(Draft draft, const PassContext& context);

}  // namespace ptrain::program
