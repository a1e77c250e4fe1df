#include "core/recipe/table/rows.h"

namespace ptrain::recipe::table {
namespace {

constexpr auto in_parallel = [](auto& recipe, std::size_t) -> auto& { return recipe.parallel; };
constexpr auto in_shape_parallel = [](auto& recipe, std::size_t i) -> auto& {
  return *recipe.shapes[i].parallel;
};

// The rows of a layout: over how many ranks.
template <class Owner>
void add_degrees(std::vector<Field>& all, const std::string& prefix, Owner owner) {
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
      row({.path = prefix + "tp",
           .unit = "ranks",
           .range = {1, 1 << 20},
           .zero_word = "auto",
           .description = "Ranks that share every matrix of a layer."},
          owner, &Parallel::tp),
      row({.path = prefix + "cp.ring",
           .unit = "ranks",
           .range = {1, 1 << 20},
           .zero_word = "auto",
           .description = "Ranks that share a row and pass keys and values around."},
          owner, &Parallel::ring),
      row({.path = prefix + "cp.ulysses",
           .unit = "ranks",
           .range = {1, 1 << 20},
           .zero_word = "auto",
           .description = "Ranks that share a row and exchange heads around attention; cp is ring "
                          "x ulysses."},
          owner, &Parallel::ulysses),
      row({.path = prefix + "ep",
           .unit = "ranks",
           .range = {1, 1 << 20},
           .zero_word = "auto",
           .description = "Ranks that the experts of a layer are dealt out to: they are taken from "
                          "dp x shard x cp x tp."},
          owner, &Parallel::ep),
      row({.path = prefix + "etp",
           .unit = "ranks",
           .range = {1, 1 << 20},
           .zero_word = "auto",
           .description = "Ranks that share the matrices of one expert, taken from the same; auto "
                          "is 1."},
          owner, &Parallel::etp));
}

// How layers are dealt out to a pipeline, and in what order they work.
template <class Owner>
void add_pipeline(std::vector<Field>& all, const std::string& prefix, Owner owner) {
  append(
      all,
      row({.path = prefix + "pp",
           .unit = "ranks",
           .range = {1, 1 << 20},
           .zero_word = "auto",
           .description = "Ranks that the layers are dealt out to (pipeline)."},
          owner, &Parallel::pp),
      row({.path = prefix + "virtual",
           .unit = "stages",
           .range = {1, 1024},
           .zero_word = "auto",
           .description = "Stages of a pipeline rank."},
          owner, &Parallel::num_virtual),
      row({.path = prefix + "schedule",
           .description = "Order of a pipeline's work: a name of `ptrain schedule --list`, or a "
                          "file in the CSV of torch.distributed.pipelining; empty: the planner "
                          "chooses."},
          owner, &Parallel::schedule),
      row({.path = prefix + "stages",
           .by_commas = true,
           .description = "Layers of each stage in model order, separated by commas; embedding and "
                          "head count as layers; empty: balanced by cost."},
          owner, &Parallel::stages),
      choice<Owner, Parallel, Embedding>(
          {.path = prefix + "embedding",
           .description =
               "Where the embedding's matrix is in a pipeline. all_stages: each rank has "
               "a part of the vocabulary, and looks its tokens up for all micro-batches "
               "before a step; where head and embedding are tied, beside head: "
               "all_stages."},
          owner, &Parallel::embedding,
          {{"first_stage", Embedding::kFirstStage}, {"all_stages", Embedding::kAllStages}}),
      choice<Owner, Parallel, Head>(
          {.path = prefix + "head",
           .description =
               "Where the head's matrix and the loss are in a pipeline. all_stages: each "
               "rank has a part of the vocabulary, and all work on it at the same time; "
               "where head and embedding are tied, beside embedding: all_stages."},
          owner, &Parallel::head,
          {{"last_stage", Head::kLastStage}, {"all_stages", Head::kAllStages}}));
}

// What a rank does with its rows.
template <class Owner>
void add_work(std::vector<Field>& all, const std::string& prefix, Owner owner) {
  append(
      all,
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
      row({.path = prefix + "stage_recompute",
           .by_commas = true,
           .description = "In place of recompute, what the layers of each stage compute again: "
                          "none, selective or full for each, in model order, separated by "
                          "commas."},
          owner, &Parallel::stage_recompute),
      row({.path = prefix + "stage_dtype",
           .by_commas = true,
           .description = "In place of precision, what the layers of each stage multiply in: fp32 "
                          "or bf16 for each, in model order, separated by commas."},
          owner, &Parallel::stage_dtype),
      optional_row({.path = prefix + "prefetch",
                    .unit = "layers",
                    .range = {0, 1024},
                    .absent_word = "auto",
                    .description = "Layers gathered ahead of the one that computes (zero 3)."},
                   owner, &Parallel::prefetch),
      choice<Owner, Parallel, std::optional<Offload>>(
          {.path = prefix + "offload",
           .description = "optimizer: its state waits on the disk, in `offload/` of the run "
                          "directory, beside GPUs in the memory of their node, and takes memory "
                          "for two layers only; slower. auto: where nothing else fits."},
          owner, &Parallel::offload,
          {{"auto", std::nullopt}, {"none", Offload::kNone}, {"optimizer", Offload::kOptimizer}}));
}

// Once for the general layout and once for a shape's own.
template <class Owner>
void add_layout(std::vector<Field>& all, const std::string& prefix, Owner owner) {
  add_degrees(all, prefix, owner);
  add_pipeline(all, prefix, owner);
  add_work(all, prefix, owner);
}

}  // namespace

void add_shape_parallel(std::vector<Field>& all) {
  add_layout(all, "shapes[].parallel.", in_shape_parallel);
}

void add_parallel(std::vector<Field>& all) { add_layout(all, "parallel.", in_parallel); }

}  // namespace ptrain::recipe::table
