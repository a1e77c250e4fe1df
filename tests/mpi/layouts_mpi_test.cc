// Run by mpirun on 2 to 5 ranks: layouts between processes, by messages and by a shared window,
// give the bits that messages between threads give. `dies`: rank 1 ends in the midst of a step, so
// the job ends and nobody waits for ever.
#include <fmt/format.h>
#include <unistd.h>

#include <exception>
#include <string_view>
#include <vector>

#include "engine/comm/bootstrap_pmix.h"
#include "tests/parity/trajectory.h"
#include "tests/support/small_model.h"

namespace ptrain::parity {
namespace {

Experiment experiment_of(const mesh::Layout& layout) {
  Experiment experiment;
  experiment.model = support::small_sizes(layout.tp > 1 ? 64 : 61);
  experiment.dtype = DType::kFloat32;
  experiment.layout = layout;
  experiment.layout.num_micro_batches = 3;
  // Sixteen columns and 61 rows split unevenly over an odd number of ranks.
  if (layout.shard % 2 == 1) experiment.block = model::BlockKind::kRow;
  experiment.num_steps = 5;
  return experiment;
}

std::vector<mesh::Layout> layouts_of(int num_ranks) {
  std::vector<mesh::Layout> layouts{{.dp = num_ranks}};
  for (const int tp : {2, 4})
    if (num_ranks % tp == 0) layouts.push_back({.shard = num_ranks / tp, .tp = tp, .zero = 3});
  for (const int ulysses : {1, 2, 4})
    if (num_ranks % (2 * ulysses) == 0 || (num_ranks == 2 && ulysses == 2))
      layouts.push_back({.cp = num_ranks, .ulysses = ulysses, .zero = 2});
  for (const int zero : {1, 2, 3}) {
    layouts.push_back({.shard = num_ranks, .zero = zero});
    if (num_ranks % 4 == 0) layouts.push_back({.dp = 2, .shard = num_ranks / 2, .zero = zero});
  }
  return layouts;
}

// Experts whose ranks share layers, rows and the experts, with room for some of the tokens.
Experiment experts_of(const mesh::Layout& layout) {
  Experiment experiment = experiment_of(layout);
  experiment.model = support::small_model("deepseek_v3");
  experiment.model.vocab_size = 64;
  experiment.model.expert_capacity_factor = 0.8;
  return experiment;
}

std::vector<Experiment> experiments_of(int num_ranks) {
  std::vector<Experiment> experiments;
  for (const mesh::Layout& layout : layouts_of(num_ranks))
    experiments.push_back(experiment_of(layout));
  if (num_ranks < 4) experiments.push_back(experts_of({.shard = num_ranks, .ep = num_ranks}));
  if (num_ranks != 4) return experiments;
  experiments.push_back(experts_of({.cp = 2, .tp = 2, .zero = 2}));
  experiments.push_back(experts_of({.dp = 2, .shard = 2, .ep = 2, .zero = 3}));
  experiments.push_back(experts_of({.cp = 2, .tp = 2, .ep = 2, .etp = 2}));
  return experiments;
}

bool all_agree(comm::Communicator& world) {
  bool agree = true;
  for (Experiment experiment : experiments_of(world.size())) {
    const std::vector<double> truth = train(experiment).losses;
    for (const bool window : {false, true}) {
      experiment.layout.shared_window = window;
      const bool equal = steps_on(world, experiment).losses == truth;
      if (!equal || world.rank() == 0)
        fmt::print("rank {}: {} {}\n", world.rank(), to_string(experiment.layout),
                   equal ? "agrees" : "DIFFERS");
      agree = agree && equal;
    }
  }
  return agree;
}

void die_in_a_step(comm::Communicator& world) {
  Experiment experiment = experiment_of({.shard = world.size(), .zero = 3});
  experiment.layout.shared_window = true;
  experiment.num_steps = 1000000;
  if (world.rank() == 1) alarm(1);  // ends the process where it stands
  steps_on(world, experiment);
}

}  // namespace
}  // namespace ptrain::parity

int main(int argc, char** argv) {
  using namespace ptrain;
  try {
    comm::identify();
    const auto world = comm::make_mpi({.time_limit_s = 60});
    if (argc > 1 && argv[1] == std::string_view("dies")) parity::die_in_a_step(*world);
    const bool agree = parity::all_agree(*world);
    world->close();
    comm::leave();
    return agree ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
