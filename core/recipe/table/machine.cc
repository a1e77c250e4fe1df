#include "core/recipe/table/rows.h"

namespace ptrain::recipe::table {
namespace {

constexpr auto in_cluster = [](auto& recipe, std::size_t) -> auto& { return recipe.cluster; };
constexpr auto in_failure = [](auto& recipe, std::size_t) -> auto& { return recipe.failure; };
constexpr auto in_log = [](auto& recipe, std::size_t) -> auto& { return recipe.log; };

}  // namespace

void add_machine(std::vector<Field>& all) {
  append(all,
         row({.path = "cluster.file",
              .description = "YAML file that describes machines (docs/cluster-file.md), beside the "
                             "recipe or in configs/clusters; empty: this machine is looked at."},
             in_cluster, &Cluster::file),
         row({.path = "cluster.ranks_per_node",
              .unit = "ranks",
              .range = {1, 65536},
              .zero_word = "auto",
              .description = "auto: one a GPU, or without GPUs one a physical core."},
             in_cluster, &Cluster::ranks_per_node));
}

void add_failure_and_log(std::vector<Field>& all) {
  append(
      all,
      optional_row(
          {.path = "failure.max_restarts",
           .unit = "restarts",
           .range = {0, 1e6},
           .absent_word = "auto",
           .description = "Automatic restarts from the newest good checkpoint. auto: none on one "
                          "machine; in a Slurm job as many as there is progress for, without the "
                          "nodes that failed."},
          in_failure, &Failure::max_restarts),
      choice<decltype(in_failure), Failure, OnNonFinite>(
          {.path = "failure.nonfinite",
           .description = "What a loss or gradient norm that is not a number does to the run."},
          in_failure, &Failure::nonfinite,
          {{"stop", OnNonFinite::kStop}, {"skip", OnNonFinite::kSkip}}),
      row({.path = "failure.hang_timeout",
           .unit = "seconds",
           .range = {1, 1e6},
           .zero_word = "auto",
           .description = "Silence that counts as a hang; auto: from the time of a step."},
          in_failure, &Failure::hang_timeout_s),
      choice<decltype(in_failure), Failure, AtTimeLimit>(
          {.path = "failure.time_limit",
           .description = "What follows the checkpoint that is written before a Slurm job's "
                          "time is up: requeue has Slurm start the job again, chain submits a "
                          "new one."},
          in_failure, &Failure::time_limit,
          {{"stop", AtTimeLimit::kStop},
           {"requeue", AtTimeLimit::kRequeue},
           {"chain", AtTimeLimit::kChain}}),
      text_list({.path = "failure.notify[]", .description = "The command or one of its arguments."},
                in_failure, &Failure::notify),
      row({.path = "log.every_steps",
           .unit = "steps",
           .range = {1, kMostSteps},
           .description = "How often progress is written where there is no terminal."},
          in_log, &Log::every_steps),
      row({.path = "log.trace_steps",
           .unit = "steps",
           .range = {0, 1e6},
           .description = "First steps of each attempt that are written to trace/."},
          in_log, &Log::trace_steps));
}

}  // namespace ptrain::recipe::table
