#include "core/recipe/table/rows.h"

namespace ptrain::recipe::table {
namespace {

constexpr auto in_checkpoint = [](auto& recipe, std::size_t) -> auto& { return recipe.checkpoint; };
constexpr auto in_validation = [](auto& recipe, std::size_t) -> auto& { return recipe.validation; };

}  // namespace

void add_upkeep(std::vector<Field>& all) {
  append(all,
         row({.path = "checkpoint.every_steps",
              .unit = "steps",
              .range = {0, kMostSteps},
              .description = "0: only at the end of each shape."},
             in_checkpoint, &Checkpoint::every_steps),
         row({.path = "checkpoint.every_minutes",
              .unit = "minutes",
              .range = {0, 1e6},
              .description = "0: never by the clock."},
             in_checkpoint, &Checkpoint::every_minutes),
         row({.path = "checkpoint.keep",
              .unit = "checkpoints",
              .range = {1, 1e6},
              .description = "Newest checkpoints that stay."},
             in_checkpoint, &Checkpoint::keep),
         row({.path = "checkpoint.async",
              .description = "Whether a checkpoint within a shape is copied at the end of its step "
                             "and written while training goes on. The copy of parameters and "
                             "optimizer state takes memory, which plans count; offloaded state is "
                             "never copied."},
             in_checkpoint, &Checkpoint::async),
         row({.path = "validation.every_steps",
              .unit = "steps",
              .range = {0, kMostSteps},
              .description = "0: only at the end of the run."},
             in_validation, &Validation::every_steps),
         row({.path = "validation.tokens",
              .unit = "tokens",
              .range = {0, kMostTokens},
              .description = "Held-out tokens of one validation; 0: no validation."},
             in_validation, &Validation::tokens),
         row({.path = "validation.sample_tokens",
              .unit = "tokens",
              .range = {0, 1 << 20},
              .description = "Length of the text that is generated at the end of the run."},
             in_validation, &Validation::sample_tokens));
}

}  // namespace ptrain::recipe::table
