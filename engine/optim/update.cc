#include "engine/optim/update.h"

#include "engine/base/engine_error.h"
#include "engine/optim/adam8bit.h"
#include "engine/optim/balance.h"

namespace ptrain::optim {
namespace {

void update_matrix(const MuonOptions& options, const Step& step, const Piece& piece, Arena& arena) {
  const auto& shape = piece.parameter.shape;
  const DType dtype = piece.master.dtype;
  PT_CHECK(shape.size() == 2 && piece.master.cols == piece.parameter.num_elements());
  const auto whole = [&](const Tensor& run) {
    return contiguous(run.data, dtype, shape[0], shape[1]);
  };
  const std::int64_t elements = muon_scratch(shape[0], shape[1]);
  const Buffer scratch(arena, program::MemoryClass::kTemporary, elements * size_of(dtype));
  muon(options, step, whole(piece.master), whole(piece.gradient), whole(piece.state[0]),
       contiguous(scratch.data(), dtype, 1, elements));
}

}  // namespace

Options options_of(const recipe::Optimizer& optimizer, const recipe::Model& model) {
  const double beta1 = optimizer.beta1, beta2 = optimizer.beta2;
  const double decay = optimizer.weight_decay;
  return {.adamw = {beta1, beta2, optimizer.eps, decay},
          .lion = {beta1, beta2, decay},
          .sgd = {optimizer.momentum, optimizer.nesterov, decay},
          .muon = {optimizer.momentum, optimizer.nesterov, decay,
                   optimizer.muon_scale == recipe::MuonScale::kMatchRmsAdamW},
          .adamw_ratio = optimizer.adamw_ratio,
          .balance_rate = model.router_bias_update_rate};
}

void update(const Options& options, const Step& step, const Piece& piece, Arena& arena) {
  const Tensor &master = piece.master, &gradient = piece.gradient;
  const auto& state = piece.state;
  switch (piece.parameter.rule) {
    case model::UpdateRule::kAdamW: {
      Step own = step;
      own.learning_rate *= options.adamw_ratio;
      return adamw(options.adamw, own, master, gradient, state[0], state[1]);
    }
    case model::UpdateRule::kAdam8bit:
      return adam8bit(options.adamw, step, master, gradient, {state[0], state[1]},
                      {state[2], state[3]});
    case model::UpdateRule::kMuon:
      return update_matrix(options.muon, step, piece, arena);
    case model::UpdateRule::kLion:
      return lion(options.lion, step, master, gradient, state[0]);
    case model::UpdateRule::kSgd:
      return sgd(options.sgd, step, master, gradient, Tensor{});
    case model::UpdateRule::kSgdMomentum:
      return sgd(options.sgd, step, master, gradient, state[0]);
    case model::UpdateRule::kBalance:
      return balance(options.balance_rate, master, gradient);
  }
}

}  // namespace ptrain::optim
