// Run by mpirun on 4 ranks: pipelines between processes, in every kind of schedule, give the bits
// that pipelines between threads give.
#include <fmt/format.h>

#include <exception>

#include "engine/comm/bootstrap_pmix.h"
#include "tests/parity/trajectory.h"
#include "tests/support/small_model.h"

namespace ptrain::parity {
namespace {

// Stages on ranks in no order; backwards split and whole.
constexpr const char* kByHand =
    "2F0,2F1,2B0,2I1,2W1\n"
    "0F0,0F1,0B0,0B1\n"
    "3F0,3I0,3F1,3B1,3W0\n"
    "1F0,1F1,1I0,1W0,1I1,1W1\n";

struct Case {
  const char* schedule;  // empty: by hand
  int pp, num_virtual;
  std::int64_t num_micro_batches;
  int shard = 1, zero = 1;
};

constexpr Case kCases[] = {
    {"gpipe", 4, 1, 6},
    {"1f1b", 4, 1, 6},
    {"1f1b", 2, 1, 4, 2, 3},
    {"interleaved_1f1b", 4, 2, 8},
    {"breadth_first", 4, 2, 4},
    {"zb_h1", 4, 1, 6},
    {"zb_h1", 2, 1, 4, 2, 2},
    {"zb_v", 4, 2, 8},
    {"v_half", 4, 2, 8},
    {"dualpipe_v", 4, 2, 8},
    {"dualpipe_v", 2, 2, 4, 2, 3},
};

Experiment experiment_of(const Case& value) {
  Experiment experiment;
  experiment.model = support::small_sizes();
  experiment.model.num_hidden_layers = 6;
  experiment.model.tie_word_embeddings = true;
  experiment.dtype = DType::kFloat32;
  experiment.num_steps = 3;
  mesh::Layout& layout = experiment.layout;
  layout.pp = value.pp;
  layout.num_virtual = value.num_virtual;
  layout.schedule = value.schedule;
  layout.num_micro_batches = value.num_micro_batches;
  layout.shard = value.shard;
  layout.zero = value.zero;
  return experiment;
}

Experiment by_hand() {
  Experiment experiment = experiment_of({"", 4, 1, 2});
  experiment.layout.schedule_csv = kByHand;
  return experiment;
}

bool agrees(comm::Communicator& world, const Experiment& experiment) {
  const bool equal = steps_on(world, experiment).losses == train(experiment).losses;
  if (!equal || world.rank() == 0)
    fmt::print("rank {}: {} {}\n", world.rank(), to_string(experiment.layout),
               equal ? "agrees" : "DIFFERS");
  return equal;
}

bool all_agree(comm::Communicator& world) {
  bool agree = true;
  for (const Case& value : kCases) agree = agrees(world, experiment_of(value)) && agree;
  return agrees(world, by_hand()) && agree;
}

}  // namespace
}  // namespace ptrain::parity

int main() {
  using namespace ptrain;
  try {
    comm::identify();
    const auto world = comm::make_mpi({.time_limit_s = 60});
    const bool agree = parity::all_agree(*world);
    world->close();
    comm::leave();
    return agree ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
