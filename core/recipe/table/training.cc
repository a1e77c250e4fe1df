#include "core/recipe/table/rows.h"

namespace ptrain::recipe::table {
namespace {

constexpr auto in_optimizer = [](auto& recipe, std::size_t) -> auto& { return recipe.optimizer; };
constexpr auto in_rate = [](auto& recipe, std::size_t) -> auto& { return recipe.learning_rate; };

}  // namespace

void add_optimizer(std::vector<Field>& all) {
  append(all,
         row({.path = "optimizer.kind",
              .choices = {"adamw"},
              .unavailable = {"muon", "adafactor", "lion", "sgd"},
              .description = "Update rule."},
             in_optimizer, &Optimizer::kind),
         row({.path = "optimizer.betas.0",
              .range = {0, 1, false, true},
              .description = "Decay of the mean of gradients."},
             in_optimizer, &Optimizer::beta1),
         row({.path = "optimizer.betas.1",
              .range = {0, 1, false, true},
              .description = "Decay of the mean of squared gradients."},
             in_optimizer, &Optimizer::beta2),
         row({.path = "optimizer.eps",
              .range = {0, 1, true},
              .description = "Added to the root of the mean square."},
             in_optimizer, &Optimizer::eps),
         row({.path = "optimizer.weight_decay",
              .range = {0, 10},
              .description = "Decay of weights, times the learning rate; not on norms and biases."},
             in_optimizer, &Optimizer::weight_decay),
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
              .unavailable = {"linear", "wsd", "inverse_sqrt"},
              .description = "Course after the warm-up."},
             in_rate, &LearningRate::decay,
             {{"cosine", Decay::kCosine}, {"constant", Decay::kConstant}}),
         row({.path = "learning_rate.final",
              .range = {0, 1},
              .description = "Share of the peak that is left at the last step (cosine)."},
             in_rate, &LearningRate::final_fraction));
}

}  // namespace ptrain::recipe::table
