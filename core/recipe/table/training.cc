#include "core/recipe/table/rows.h"

namespace ptrain::recipe::table {
namespace {

constexpr auto in_optimizer = [](auto& recipe, std::size_t) -> auto& { return recipe.optimizer; };
constexpr auto in_rate = [](auto& recipe, std::size_t) -> auto& { return recipe.learning_rate; };

}  // namespace

void add_optimizer(std::vector<Field>& all) {
  append(
      all,
      choice<decltype(in_optimizer), Optimizer, OptimizerKind>(
          {.path = "optimizer.kind",
           .unavailable = {"adafactor"},
           .description = "Update rule. muon: of the matrices between embedding and head, and "
                          "AdamW of all else; adam8bit: AdamW whose state takes a byte a value, "
                          "but for tensors below 4096 elements. A field below that the kind "
                          "makes no use of may not be changed."},
          in_optimizer, &Optimizer::kind,
          {{"adamw", OptimizerKind::kAdamW},
           {"muon", OptimizerKind::kMuon},
           {"adam8bit", OptimizerKind::kAdam8bit},
           {"lion", OptimizerKind::kLion},
           {"sgd", OptimizerKind::kSgd}}),
      row({.path = "optimizer.betas.0",
           .range = {0, 1, false, true},
           .description = "Decay of the mean of gradients; lion: its share in the direction of "
                          "the step (all but sgd)."},
          in_optimizer, &Optimizer::beta1),
      row({.path = "optimizer.betas.1",
           .range = {0, 1, false, true},
           .description = "Decay of the mean of squared gradients; lion: of the mean of "
                          "gradients (all but sgd)."},
          in_optimizer, &Optimizer::beta2),
      row({.path = "optimizer.eps",
           .range = {0, 1, true},
           .description = "Added to the root of the mean square (adamw, adam8bit, muon)."},
          in_optimizer, &Optimizer::eps),
      row({.path = "optimizer.weight_decay",
           .range = {0, 10},
           .description = "Decay of weights, times the learning rate; not on norms and biases. "
                          "sgd: added to the gradient."},
          in_optimizer, &Optimizer::weight_decay),
      row({.path = "optimizer.momentum",
           .range = {0, 1, false, true},
           .description = "Decay of the momentum (muon, sgd)."},
          in_optimizer, &Optimizer::momentum),
      row({.path = "optimizer.nesterov",
           .description = "Whether the step looks ahead by one more gradient (muon, sgd)."},
          in_optimizer, &Optimizer::nesterov),
      choice<decltype(in_optimizer), Optimizer, MuonScale>(
          {.path = "optimizer.muon_scale",
           .description = "Length of a step of an m x n matrix. match_rms_adamw: 0.2 sqrt(max(m, "
                          "n)), so that AdamW's learning rates fit; original: sqrt(max(1, m / "
                          "n)) (muon)."},
          in_optimizer, &Optimizer::muon_scale,
          {{"match_rms_adamw", MuonScale::kMatchRmsAdamW}, {"original", MuonScale::kOriginal}}),
      row({.path = "optimizer.adamw_ratio",
           .range = {0, 1000, true},
           .description = "Learning rate of what AdamW updates, as a multiple of the schedule's "
                          "(muon)."},
          in_optimizer, &Optimizer::adamw_ratio),
      row({.path = "optimizer.clip_norm",
           .range = {0, 1e9},
           .description = "Largest norm of all gradients together; 0: no clipping."},
          in_optimizer, &Optimizer::clip_norm));
}

void add_learning_rate(std::vector<Field>& all) {
  append(all,
         row({.path = "learning_rate.peak",
              .range = {0, 100, true},
              .description = "Learning rate after the warm-up."},
             in_rate, &LearningRate::peak),
         row({.path = "learning_rate.warmup_steps",
              .unit = "steps",
              .range = {0, kMostSteps},
              .description = "Steps of linear growth at the start of the run."},
             in_rate, &LearningRate::warmup_steps),
         choice<decltype(in_rate), LearningRate, Decay>(
             {.path = "learning_rate.decay",
              .unavailable = {"inverse_sqrt"},
              .description = "Course after the warm-up, down to `learning_rate.final` at the last "
                             "step. wsd: constant, then linear over the last "
                             "`learning_rate.decay_steps`."},
             in_rate, &LearningRate::decay,
             {{"cosine", Decay::kCosine},
              {"linear", Decay::kLinear},
              {"wsd", Decay::kWsd},
              {"constant", Decay::kConstant}}),
         row({.path = "learning_rate.decay_steps",
              .unit = "steps",
              .range = {0, kMostSteps},
              .description = "Steps at the end of the run over which the rate falls (wsd)."},
             in_rate, &LearningRate::decay_steps),
         row({.path = "learning_rate.final",
              .range = {0, 1},
              .description = "Share of the peak that is left at the last step (all but constant)."},
             in_rate, &LearningRate::final_fraction));
}

}  // namespace ptrain::recipe::table
