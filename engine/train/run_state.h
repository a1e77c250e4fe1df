#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/mesh/layout.h"
#include "core/model/architecture.h"
#include "core/run/directory.h"
#include "core/run/plan.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/comm/communicator.h"
#include "engine/execute/offload.h"
#include "engine/state/group_buffer.h"
#include "engine/train/progress.h"

namespace ptrain::train {

// What of one rank goes into a checkpoint, and where it comes back to.
struct RankState {
  const model::Architecture& whole;         // the model
  const model::Architecture& architecture;  // what of it this rank holds
  const run::Plan& plan;
  const mesh::Layout& layout;
  std::span<state::GroupBuffer> groups;
  comm::Communicator& world;
  execute::Offload* offload = nullptr;  // null: optimizer state is resident
};

// What a checkpoint after `progress.step` steps holds of this rank. `optimizer_step` is the place
// of the step that the optimizer's state is of.
checkpoint::Items state_items(const RankState& state, const Progress& progress,
                              double learning_rate, float& optimizer_step);

// What any rank of the layout saves, from the layout alone; on the first rank, which asks.
checkpoint::ItemsOf items_of_ranks(const RankState& state);

// What an attempt starts from.
struct Start {
  std::optional<checkpoint::Source> source;  // none: initial values
  bool is_own = true;                        // the run's own checkpoint, not its plan's origin
  Progress progress;
  std::vector<std::string> damaged;  // why each newer checkpoint is passed over
};

// The newest good checkpoint of the run, else the one that its plan goes on from. Collective over
// the world.
Start find_start(const run::Plan& plan, const run::Directory& directory, comm::Communicator& world,
                 checkpoint::Check check = checkpoint::Check::kAtOnce);

// Fills parameters and moments from any DCP checkpoint of the model; moments stay zero where the
// plan's origin has none. Collective over the world.
void load_state(const RankState& state, const Start& start);

// Fills parameters from the Hugging Face folder that the recipe names. Collective over the world.
void load_weights(const RankState& state);

}  // namespace ptrain::train
