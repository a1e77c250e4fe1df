#pragma once

#include "engine/base/tensor.h"
#include "engine/optim/step.h"

namespace ptrain::optim {

struct MuonOptions {
  double momentum = 0.95;
  bool nesterov = true;
  double weight_decay = 0.1;
  // Of the step: 0.2 sqrt(max(rows, columns)), about that of AdamW; else sqrt(max(1, rows /
  // columns)).
  bool match_rms_adamw = false;
};

// Elements of scratch that a matrix of this size takes.
std::int64_t muon_scratch(std::int64_t rows, std::int64_t cols);

// One step on a whole matrix, all [rows, cols] of one dtype and contiguous: torch.optim.Muon's
// rule, but iterated in the matrix's dtype instead of bfloat16. `scratch`: muon_scratch elements of
// that dtype.
void muon(const MuonOptions& options, const Step& step, const Tensor& parameter,
          const Tensor& gradient, const Tensor& momentum_buffer, const Tensor& scratch);

}  // namespace ptrain::optim
