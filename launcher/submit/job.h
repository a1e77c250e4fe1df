#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/recipe/recipe.h"
#include "core/run/directory.h"

namespace ptrain::submit {

// One Slurm job that trains a run. Its arguments are given to sbatch as they are, and stand in its
// script too, so that the script can be submitted by hand.
struct Job {
  run::Directory directory;
  std::string name;
  std::string program;  // absolute path of the ptrain binary
  recipe::Cluster cluster;
  int ranks_per_node = 0;  // 0: not planned yet
};

// Jobs of an array that go on with the run one after the other; 0: it is a single job.
int num_tasks(const recipe::Slurm& slurm);

// What the recipe or the command line asks Slurm for: then a run outside of a job is submitted.
bool asks_for_slurm(const recipe::Cluster& cluster);

// What only the user can know: nodes, partition, account, ..., and at the end `extra`.
std::vector<std::string> requests(const recipe::Cluster& cluster);

// All arguments of sbatch but --parsable and the script.
std::vector<std::string> arguments_of(const Job& job);

// The batch script, job.sh.
std::string script_of(const Job& job);

// An argument as Slurm reads it behind #SBATCH: in quotes where it needs some.
std::string quoted_argument(const std::string& argument);

// What must not reach #SBATCH, sbatch or the script, with the field's name: control characters,
// names that are no names of variables, arguments of `extra` that would make it another kind of
// job.
Status check_requests(const Job& job);

}  // namespace ptrain::submit
