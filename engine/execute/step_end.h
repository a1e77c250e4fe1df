#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/model/architecture.h"
#include "engine/comm/communicator.h"
#include "engine/execute/router_report.h"
#include "engine/layers/layer.h"
#include "engine/optim/update.h"
#include "engine/state/group_buffer.h"

namespace ptrain::execute {

struct StepSettings {
  double learning_rate = 0;
  std::int64_t step = 1;  // counts from 1
  double clip_norm = 0;   // 0: no clipping
  optim::Options optimizer;
};

// Global values, the same on every rank.
struct StepResult {
  double loss = 0;       // mean over the target tokens of the step
  double grad_norm = 0;  // of the mean gradient, before clipping
  std::int64_t num_targets = 0;
  double scale = 0;    // what OPTIMIZER multiplies gradients by: clip coefficient / targets
  bool finite = true;  // loss and norm are numbers; where false, OPTIMIZER leaves all as it is
  std::optional<RouterReport> routers;  // where the model has experts
};

// GRAD_NORM: reduces loss, token count and square norm, of which each rank adds the runs that it
// counts. Collective over the world.
StepResult reduce_norm(std::span<state::GroupBuffer> groups, const layers::LossSums& sums,
                       double clip_norm, comm::Communicator& world);

// OPTIMIZER: one update of the rank's shard of a group. Some rules take scratch from the arena.
void apply_optimizer(const model::Architecture& architecture, const StepSettings& settings,
                     const StepResult& result, state::GroupBuffer& group);

}  // namespace ptrain::execute
