// The table of the recipe: one row a field. Rows are in the order of docs/recipe.md.
#include "core/recipe/table/rows.h"

namespace ptrain::recipe {
namespace {

std::vector<Field> make_fields() {
  std::vector<Field> all;
  table::add_top(all);
  table::add_model(all);
  table::add_data(all);
  table::add_shapes(all);
  table::add_shape_parallel(all);
  table::add_optimizer(all);
  table::add_learning_rate(all);
  table::add_parallel(all);
  table::add_upkeep(all);
  table::add_machine(all);
  table::add_slurm(all);
  table::add_failure_and_log(all);
  return all;
}

}  // namespace

const std::vector<Field>& fields() {
  static const std::vector<Field> all = make_fields();
  return all;
}

}  // namespace ptrain::recipe
