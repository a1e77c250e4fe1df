#include "core/recipe/table/rows.h"

namespace ptrain::recipe::table {
namespace {

constexpr auto in_recipe = [](auto& recipe, std::size_t) -> auto& { return recipe; };

}  // namespace

void add_top(std::vector<Field>& all) {
  append(all,
         row({.path = "version",
              .required = true,
              .range = {1, 1},
              .description = "Version of the recipe's format."},
             in_recipe, &Recipe::version),
         row({.path = "name",
              .required = true,
              .description = "Name of the run's folder: letters, digits, `.`, `_`, `-`."},
             in_recipe, &Recipe::name),
         row({.path = "seed",
              .range = {0, 9223372036854775807.0},
              .description = "Start of all random numbers: weights and the order of documents."},
             in_recipe, &Recipe::seed),
         choice<decltype(in_recipe), Recipe, Precision>(
             {.path = "precision",
              .description =
                  "Numbers that matrices multiply: weights and activations. With bf16 master "
                  "weights, gradients, optimizer state, scores of attention, norms, loss and the "
                  "residual stream are fp32; it is for processors with units for it (AMX, "
                  "AVX512-BF16). fp64 serves comparisons."},
             in_recipe, &Recipe::precision,
             {{"fp32", Precision::kFloat32},
              {"bf16", Precision::kBFloat16},
              {"fp64", Precision::kFloat64}}));
}

}  // namespace ptrain::recipe::table
