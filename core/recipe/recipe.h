#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/recipe/data.h"
#include "core/recipe/model.h"
#include "core/recipe/optimizer.h"
#include "core/recipe/slurm.h"

namespace ptrain::recipe {

// What the user asked for, complete: every field has its value or its default.
// Field names, units, defaults and allowed values are those of docs/recipe.md.

enum class Precision { kFloat32, kBFloat16, kFloat64 };
enum class Recompute { kNone, kSelective, kFull };
std::string_view to_string(Recompute recompute);
std::optional<Recompute> recompute_named(std::string_view word);
enum class Offload { kNone, kOptimizer };
// Where the embedding's and the head's matrix lie in a pipeline.
enum class Embedding { kFirstStage, kAllStages };
enum class Head { kLastStage, kAllStages };
enum class OnNonFinite { kStop, kSkip };

// A layout as asked for; zero or empty = the planner chooses.
struct Parallel {
  bool automatic = true;  // `parallel: auto`
  int dp = 0;
  int shard = 0;
  int zero = 0;
  int tp = 0;
  int pp = 0;
  int num_virtual = 0;
  std::string schedule;  // a name, or a file that ends in .csv
  std::string stages;    // layers of each stage, by commas
  Embedding embedding = Embedding::kFirstStage;
  Head head = Head::kLastStage;
  int ring = 0, ulysses = 0;  // cp is their product
  int ep = 0;
  int etp = 0;
  std::int64_t micro_batch = 0;  // rows
  std::optional<Recompute> recompute;
  std::string stage_recompute;  // of each stage, by commas, in place of `recompute`
  std::string stage_dtype;      // the same, in place of the recipe's precision
  std::optional<int> prefetch;  // layers gathered ahead (zero 3)
  std::optional<Offload> offload;
  bool operator==(const Parallel&) const = default;
};

struct Shape {
  std::string name;
  std::int64_t sequence = 0;             // tokens of a row
  std::int64_t global_batch_tokens = 0;  // rows x sequence of a step, all ranks
  std::int64_t steps = 0;
  std::int64_t tokens = 0;  // what the recipe may give in place of steps; then steps follow
  std::optional<Parallel> parallel;  // in place of the general one
  bool operator==(const Shape&) const = default;
};

struct Checkpoint {
  std::int64_t every_steps = 0;  // 0: only at the end of a shape and of the run
  double every_minutes = 0;      // 0: never by time
  int keep = 2;
  bool async = true;  // saves within a shape are written behind training
  bool operator==(const Checkpoint&) const = default;
};

// Whether training keeps memory for a copy of what it saves: saves at the end of a shape need none.
constexpr bool keeps_copy(const Checkpoint& checkpoint) {
  return checkpoint.async && (checkpoint.every_steps > 0 || checkpoint.every_minutes > 0);
}

struct Validation {
  std::int64_t every_steps = 0;    // 0: only at the end
  std::int64_t tokens = 0;         // 0: no validation
  std::int64_t sample_tokens = 0;  // generated at the end of the run
  bool operator==(const Validation&) const = default;
};

struct Cluster {
  std::string file;
  int nodes = 1;
  int ranks_per_node = 0;  // 0: physical cores
  Slurm slurm;
  std::vector<std::string> setup;  // lines of shell before the ranks of a Slurm job start
  std::vector<std::string> env;    // names of the variables that a Slurm job gets; empty: all
  Container container;
  RankLauncher launcher = RankLauncher::kSrun;
  std::string local_copy;  // folder on a disk of each node's own; empty: nothing is copied
  std::string interface;   // of the network that nodes meet on; empty: that on the way to them
  bool operator==(const Cluster&) const = default;
};

enum class AtTimeLimit { kStop, kRequeue, kChain };

struct Failure {
  // None: 0 on one machine; in a Slurm job as many as there is progress for.
  std::optional<int> max_restarts;
  OnNonFinite nonfinite = OnNonFinite::kStop;
  double hang_timeout_s = 0;  // 0: from the step time
  AtTimeLimit time_limit = AtTimeLimit::kStop;
  std::vector<std::string> notify;  // a command that is told how the run ends
  bool operator==(const Failure&) const = default;
};

struct Log {
  std::int64_t every_steps = 10;
  std::int64_t trace_steps = 0;  // steps written to trace/
  bool operator==(const Log&) const = default;
};

struct Recipe {
  int version = 1;
  std::string name;
  std::uint64_t seed = 0;
  Model model;
  Data data;
  std::vector<Shape> shapes;
  Optimizer optimizer;
  LearningRate learning_rate;
  Precision precision = Precision::kFloat32;
  Parallel parallel;
  Checkpoint checkpoint;
  Validation validation;
  Cluster cluster;
  Failure failure;
  Log log;
  bool operator==(const Recipe&) const = default;
};

}  // namespace ptrain::recipe
