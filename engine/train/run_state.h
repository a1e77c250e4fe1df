#pragma once

#include <span>
#include <string>

#include "core/mesh/layout.h"
#include "core/model/architecture.h"
#include "core/run/plan.h"
#include "engine/comm/communicator.h"
#include "engine/state/group_buffer.h"
#include "engine/train/progress.h"

namespace ptrain::train {

// What of one rank goes into a checkpoint, and where it comes back to.
struct RankState {
  const model::Architecture& architecture;
  const run::Plan& plan;
  const mesh::Layout& layout;
  std::span<state::GroupBuffer> groups;
  comm::Communicator& world;
};

// Writes checkpoints/step-N after `progress.step` steps. Collective over the world.
void save_state(const RankState& state, const Progress& progress, double learning_rate,
                const std::string& folder);

// Fills parameters and moments; gives back where training stood. Collective over the world.
Progress load_state(const RankState& state, const std::string& folder);

// Only where training stood, before parameters have a place. Collective over the world.
Progress load_progress(const std::string& folder, comm::Communicator& world);

}  // namespace ptrain::train
