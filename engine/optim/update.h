#pragma once

#include <vector>

#include "core/model/architecture.h"
#include "core/recipe/model.h"
#include "core/recipe/optimizer.h"
#include "engine/base/arena.h"
#include "engine/optim/adamw.h"
#include "engine/optim/lion.h"
#include "engine/optim/muon.h"
#include "engine/optim/sgd.h"

namespace ptrain::optim {

// The settings of every rule that a recipe may name.
struct Options {
  AdamWOptions adamw;
  LionOptions lion;
  SgdOptions sgd;
  MuonOptions muon;
  double adamw_ratio = 1;  // of AdamW's learning rate to the step's, where it stands beside Muon
  double balance_rate = 0;  // of biases of routers
};

Options options_of(const recipe::Optimizer& optimizer, const recipe::Model& model);

// What an update reads and writes: whole blocks of one parameter, [1, n], and the tensors of its
// state in the order of model::state_of.
struct Piece {
  const model::ParameterSpec& parameter;
  Tensor master, gradient;
  std::vector<Tensor> state;
};

// One step by the parameter's rule. Muon takes scratch from the arena.
void update(const Options& options, const Step& step, const Piece& piece, Arena& arena);

}  // namespace ptrain::optim
