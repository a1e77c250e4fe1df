#include "core/recipe/table/rows.h"

namespace ptrain::recipe::table {
namespace {

constexpr auto in_parallel = [](auto& recipe, std::size_t) -> auto& { return recipe.parallel; };
constexpr auto in_shape_parallel = [](auto& recipe, std::size_t i) -> auto& {
  return *recipe.shapes[i].parallel;
};

// The rows of a layout, once for the general one and once for a shape's own.
template <class Owner>
void add_layout(std::vector<Field>& all, const std::string& prefix, Owner owner) {
  append(
      all,
      row({.path = prefix + "dp",
           .unit = "ranks",
           .range = {1, 1 << 20},
           .zero_word = "auto",
           .description = "Replicas of the parameters."},
          owner, &Parallel::dp),
      row({.path = prefix + "shard",
           .unit = "ranks",
           .range = {1, 1 << 20},
           .zero_word = "auto",
           .description = "Ranks over which a replica is sharded."},
          owner, &Parallel::shard),
      row({.path = prefix + "zero",
           .range = {1, 3},
           .zero_word = "auto",
           .description = "1: states sharded, gradients reduced once a step; 2: reduced each "
                          "micro-batch; 3: parameters sharded too."},
          owner, &Parallel::zero),
      row({.path = prefix + "micro_batch",
           .unit = "rows",
           .range = {1, 1 << 24},
           .zero_word = "auto",
           .description = "Rows of one forward pass on a rank."},
          owner, &Parallel::micro_batch),
      choice<Owner, Parallel, std::optional<Recompute>>(
          {.path = prefix + "recompute",
           .description = "What a layer computes again going backward. selective: what "
                          "element-wise work can make again (norms, activations), for a few "
                          "per cent of the step; full: all, from the layer's input."},
          owner, &Parallel::recompute,
          {{"auto", std::nullopt},
           {"none", Recompute::kNone},
           {"selective", Recompute::kSelective},
           {"full", Recompute::kFull}}),
      optional_row({.path = prefix + "prefetch",
                    .unit = "layers",
                    .range = {0, 1024},
                    .absent_word = "auto",
                    .description = "Layers gathered ahead of the one that computes (zero 3)."},
                   owner, &Parallel::prefetch),
      choice<Owner, Parallel, std::optional<Offload>>(
          {.path = prefix + "offload",
           .description = "optimizer: its state waits on the disk, in `offload/` of the run "
                          "directory, and takes memory for two layers only; slower. auto: where "
                          "nothing else fits."},
          owner, &Parallel::offload,
          {{"auto", std::nullopt}, {"none", Offload::kNone}, {"optimizer", Offload::kOptimizer}}));
}

}  // namespace

void add_shape_parallel(std::vector<Field>& all) {
  add_layout(all, "shapes[].parallel.", in_shape_parallel);
}

void add_parallel(std::vector<Field>& all) { add_layout(all, "parallel.", in_parallel); }

}  // namespace ptrain::recipe::table
