#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ptrain::recipe {

// What ptrain asks Slurm for where it submits a job; texts are in the words of sbatch.
struct Slurm {
  int nodes = 0;  // 0: one
  std::string partition;
  std::string account;
  std::string qos;
  std::string time;
  int gpus_per_node = 0;
  std::string constraint;
  std::string exclude;
  std::string comment;
  std::string array;               // jobs that go on one after the other: "9" or "1-9%1"
  std::vector<std::string> extra;  // further arguments of sbatch
  bool operator==(const Slurm&) const = default;
};

// How many jobs `array` asks for, 0 where it is empty; none: it is no such text, or one by which
// two would run at once.
std::optional<int> num_tasks(const std::string& array);

// What starts ranks on the nodes of a Slurm job.
enum class RankLauncher { kSrun, kMpirun };

enum class ContainerRuntime { kPyxis, kApptainer };

// What ranks of a Slurm job run in.
struct Container {
  std::string image;  // empty: in none
  ContainerRuntime runtime = ContainerRuntime::kPyxis;
  std::vector<std::string> mounts;  // FOLDER or FOLDER:INSIDE
  bool operator==(const Container&) const = default;
};

}  // namespace ptrain::recipe
