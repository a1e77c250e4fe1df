#pragma once

#include <cstdint>
#include <string_view>

namespace ptrain::recipe {

enum class OptimizerKind { kAdamW, kMuon, kAdam8bit, kLion, kSgd };
enum class MuonScale { kOriginal, kMatchRmsAdamW };

struct Optimizer {
  OptimizerKind kind = OptimizerKind::kAdamW;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;  // not on parameters of one dim
  double clip_norm = 1.0;     // 0: no clipping
  double momentum = 0.95;
  bool nesterov = true;
  MuonScale muon_scale = MuonScale::kMatchRmsAdamW;
  double adamw_ratio = 1.0;  // of AdamW's learning rate to Muon's
  bool operator==(const Optimizer&) const = default;
};

// Whether a kind of optimizer makes use of a field (`momentum`, `betas.1`); true of those that all
// kinds have.
bool uses(OptimizerKind kind, std::string_view field);

enum class Decay { kCosine, kLinear, kWsd, kConstant };

struct LearningRate {
  double peak = 1e-3;
  std::int64_t warmup_steps = 0;
  Decay decay = Decay::kCosine;
  std::int64_t decay_steps = 0;  // wsd: the last steps of the run
  double final_fraction = 0.1;   // of the peak, at the last step of the run
  bool operator==(const LearningRate&) const = default;
};

}  // namespace ptrain::recipe
