#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/mesh/layout.h"
#include "core/model/architecture.h"
#include "core/program/memory.h"
#include "engine/comm/communicator.h"
#include "engine/execute/router_report.h"
#include "tests/parity/toy_rows.h"

namespace ptrain::parity {

struct Experiment {
  recipe::Model model;
  DType dtype = DType::kFloat64;  // that matrices are multiplied in
  mesh::Layout layout;
  std::int64_t sequence = 24;
  int num_steps = 3;
  double learning_rate = 1e-2;
  double clip_norm = 1.0;
  // Given to every parameter where it is not kElement, so that shards of whole rows run too.
  model::BlockKind block = model::BlockKind::kElement;
  recipe::Optimizer optimizer;
  std::uint64_t seed = 7;
  RowKind rows = RowKind::kPacked;
  bool repeats = false;  // the rows of the first step in every step
  bool sleeps = false;   // each rank at times of its own
};

// What a layout computed; parameters and gradients by Hugging Face name, whole.
struct Trajectory {
  std::vector<double> losses;
  std::vector<double> grad_norms;
  std::vector<execute::RouterReport> routers;  // where the model has experts
  std::map<std::string, std::vector<double>>
      first_gradients;  // sums over targets of the first step
  std::map<std::string, std::vector<double>> initial_parameters;
  std::map<std::string, std::vector<double>> final_parameters;
  std::vector<program::BytesByClass> peak_bytes;  // measured, one a rank
  std::vector<program::BytesByClass> predicted_bytes;
};

// Trains on toy_rows with ranks as threads of this process; every step has the same rows for any
// layout with as many rows a step.
Trajectory train(const Experiment& experiment);

// The same training with `world` as its ranks: losses and norms, which are the same on each, and
// the bytes of this rank alone. Collective.
Trajectory steps_on(comm::Communicator& world, const Experiment& experiment);

// ||a - b|| / ||b||, or ||a - b|| where b is zero.
double relative_distance(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace ptrain::parity
