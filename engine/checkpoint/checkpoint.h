#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/checkpoint/item.h"
#include "engine/comm/communicator.h"

namespace ptrain::checkpoint {

// Writes `folder` (checkpoints/step-N) as a PyTorch DCP checkpoint: into .tmp-*, fsync, checksums
// in ptrain.json, rename. Collective over `world`. Ranks whose data others hold too (replicas) pass
// no tensors. Throws EngineError (kUnusable, same on all ranks) when it cannot be written: nothing
// is published and older checkpoints are untouched.
void save(const std::string& folder, const Items& items, comm::Communicator& world);

// Fills the tensors of `items` from any DCP folder, whatever layout wrote it, and returns the
// values asked for by key. Collective over `world`. Missing keys, other shapes, damage: one
// EngineError (kUnusable) that lists them all.
std::vector<ValueItem> load(const std::string& folder, const Items& items,
                            comm::Communicator& world);

// The newest checkpoint under `checkpoints` whose files verify; empty when there is none.
std::string newest_good(const std::string& checkpoints);

// Removes all but the newest `keep` good checkpoints, never the only good one, and leftovers of
// broken saves.
void prune(const std::string& checkpoints, int keep);

}  // namespace ptrain::checkpoint
