#pragma once

#include <span>

#include "core/base/result.h"
#include "core/mesh/layout.h"
#include "core/model/architecture.h"
#include "core/program/action.h"

namespace ptrain::program {

// How a rank takes its actions up: each lane at its own pace, or all in one queue (NCCL's way).
enum class Queues { kByLane, kOne };

// Runs the programs of all ranks symbolically. Holds for a legal world: parameters are whole when a
// layer reads them and given back after it; every stash is made once and freed once; every gradient
// is complete when it is reduced, reduced once, and finished before GRAD_NORM; every group is
// updated once after that, and offloaded state is there for it and away again after it; the ranks
// meet in their collectives, so that every action runs.
// A pipeline rank receives what others send it, in the order in which they do, waits for it, and
// sends what others need; copies of a tied group are added up.
// Errors (kBug): the first broken condition with its rank and action.
Status validate(std::span<const Program> world, const model::Architecture& architecture,
                const mesh::Layout& layout, Queues queues = Queues::kByLane);

// The same for a world in which ranks share programs: one entry a rank, ranks of one class point to
// the same program, which is then looked into once.
Status validate(std::span<const Program* const> world, const model::Architecture& architecture,
                const mesh::Layout& layout, Queues queues = Queues::kByLane);

// The same where ranks hold different parts of the model (mesh/part.h): one a rank.
Status validate(std::span<const Program* const> world,
                std::span<const model::Architecture* const> parts, const mesh::Layout& layout,
                Queues queues = Queues::kByLane);

// The same of a world in which all ranks at one place along the pipeline run one program: one entry
// a place. Wherever one of them stands the others of its groups stand too, so one is looked at for
// all, and thousands of ranks take no longer than a few.
Status validate_places(std::span<const Program* const> places,
                       std::span<const model::Architecture* const> parts,
                       const mesh::Layout& layout, Queues queues = Queues::kByLane);

}  // namespace ptrain::program
