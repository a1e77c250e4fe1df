#include "launcher/start/srun.h"

#include <fmt/ranges.h>
#include <signal.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>

#include "core/run/request.h"
#include "launcher/cluster/hostlist.h"
#include "launcher/cluster/slurm_command.h"
#include "launcher/start/network.h"

namespace ptrain::start {

namespace {

// How srun writes that a task ended: "Exited with exit code 3", or the signal in the C library's
// words.
LauncherReport ending(int rank, std::string_view text) {
  constexpr std::string_view kExited = "Exited with exit code ";
  LauncherReport report;
  report.rank = rank;
  if (text.starts_with(kExited)) {
    text.remove_prefix(kExited.size());
    std::from_chars(text.data(), text.data() + text.size(), report.code);
    return report;
  }
  report.out_of_memory = text.starts_with("Out Of Memory");  // of Slurm's control groups
  if (report.out_of_memory) report.signal = SIGKILL;
  for (int signal = 1; signal < 32; ++signal)
    if (text.starts_with(::strsignal(signal))) report.signal = signal;
  return report;
}

// "srun: error: task 3 launch failed: ...", as on a node that has just come back. -1: says no such
// thing.
int not_launched(std::string_view line) {
  constexpr std::string_view kTask = "srun: error: task ";
  if (!line.starts_with(kTask) || line.find(" launch failed") == std::string_view::npos) return -1;
  int rank = -1;
  std::from_chars(line.data() + kTask.size(), line.data() + line.size(), rank);
  return rank;
}

}  // namespace

// "srun: error: Node failure on node2", of one that Slurm has given up; "srun: error: Task launch
// for StepId=7.2 failed on node node2: Communication connection failure", where its slurmd is dead.
LauncherReport lost_nodes_in(std::string_view output) {
  constexpr std::string_view kGivenUp = "srun: error: Node failure on ";
  constexpr std::string_view kLaunch = "srun: error: Task launch for ", kNode = " failed on node ";
  LauncherReport report;
  for (const std::string_view line : cluster::lines_of(output)) {
    const auto node = line.starts_with(kLaunch) ? line.find(kNode) : std::string_view::npos;
    std::string_view list;
    if (line.starts_with(kGivenUp)) list = line.substr(kGivenUp.size());
    if (node != std::string_view::npos) list = line.substr(node + kNode.size());
    const auto names = cluster::expand_hostlist(list.substr(0, list.find(':')));
    for (const auto& name : names.value_or(std::vector<std::string>{}))
      if (std::ranges::find(report.lost_nodes, name) == report.lost_nodes.end())
        report.lost_nodes.push_back(name);
    if (report.what.empty() && !report.lost_nodes.empty()) report.what = line;
  }
  return report;
}

bool Srun::binds(const Launch& launch) const {
  return traits_.cpu_bind && launch.num_ranks / launch.num_nodes <= traits_.cpus;
}

std::vector<std::string> Srun::placement(const Launch& launch) const {
  const int per_node = launch.num_ranks / launch.num_nodes;
  // Ranks fill node after node, as plans place them, and share its CPUs evenly.
  std::vector<std::string> out{
      fmt::format("--nodes={}", launch.num_nodes), fmt::format("--ntasks={}", launch.num_ranks),
      fmt::format("--ntasks-per-node={}", per_node),
      fmt::format("--cpus-per-task={}", std::max(1, traits_.cpus / per_node)),
      "--distribution=block:block"};
  // Slot after slot of the plan's map: each rank on cores of its own, threads on none of another's.
  if (binds(launch)) out.emplace_back("--cpu-bind=cores");
  // Each rank sees all GPUs of its node, whatever the site's defaults are, and takes its own by
  // number: with one of them visible, GPUs cannot reach one another's memory.
  if (traits_.gpu_bind && launch.on_gpus) out.emplace_back("--gpu-bind=none");
  if (!launch.nodes.empty())
    out.push_back(fmt::format("--nodelist={}", fmt::join(launch.nodes, ",")));
  // A step whose node is lost holds its CPUs until Slurm finds that out, minutes later.
  if (traits_.overlap) out.emplace_back("--overlap");
  if (per_node > traits_.cpus) out.emplace_back("--overcommit");
  return out;
}

base::Command Srun::command(const Launch& launch) const {
  base::Command command;
  command.arguments = {path_, "--mpi=pmix", "--kill-on-bad-exit=1"};
  const auto places = placement(launch);
  command.arguments.insert(command.arguments.end(), places.begin(), places.end());
  // The user's SLURM_EXPORT_ENV must not keep the variables below from the ranks.
  command.arguments.insert(command.arguments.end(), {"--export=ALL", "--input=none"});
  command.arguments.insert(command.arguments.end(), launch.inside.begin(), launch.inside.end());
  command.arguments.insert(command.arguments.end(),
                           {launch.worker, "worker", "--request", launch.request_file});
  // Slurm's other way for a PMIx fence does not wait for the other nodes (seen with 22.05), and one
  // start of Open MPI in twenty then crashes or hangs.
  command.environment = {{"SLURM_PMIX_FENCE", "ring"},
                         {"OMP_NUM_THREADS", std::to_string(launch.threads)},
                         {"OMP_WAIT_POLICY", "passive"},
                         {run::kControlToken, launch.token}};
  if (launch.num_ranks / launch.num_nodes > traits_.cpus)
    command.environment.emplace_back("OMPI_MCA_mpi_yield_when_idle", "1");
  if (!traits_.single_copy)
    for (const char* component : {"vader", "sm"})  // Open MPI 4 and 5
      command.environment.emplace_back(
          fmt::format("OMPI_MCA_btl_{}_single_copy_mechanism", component), "none");
  return command;
}

// "srun: error: node1: task 1: Killed"; "srun: error: node2: tasks 2-3: Terminated". The first line
// is about the first to end. What Slurm kills because a node is lost comes before the news of that.
LauncherReport Srun::report(std::string_view output) const {
  constexpr std::string_view kError = "srun: error: ";
  if (auto lost = lost_nodes_in(output); !lost.lost_nodes.empty()) return lost;
  for (std::string_view line : cluster::lines_of(output)) {
    if (const auto rank = not_launched(line); rank >= 0) {
      line.remove_prefix(kError.size());
      return {rank, 0, static_cast<int>(ExitCode::kRankError), {}, "srun: " + std::string(line)};
    }
    const auto task = line.find(": task");
    if (!line.starts_with(kError) || task == std::string_view::npos) continue;
    line.remove_prefix(task + std::string_view(": task").size());
    if (line.starts_with('s')) line.remove_prefix(1);
    const auto text = line.find(": ");
    int rank = -1;
    if (text == std::string_view::npos || !line.starts_with(' ')) continue;
    std::from_chars(line.data() + 1, line.data() + text, rank);
    if (rank >= 0) return ending(rank, line.substr(text + 2));
  }
  return {};
}

Result<std::string> help_of(const std::string& srun) {
  static std::map<std::string, std::string> asked;
  if (const auto known = asked.find(srun); known != asked.end()) return known->second;
  PTRAIN_TRY(base::Finished help, base::run_to_end({{srun, "--help"}, {}}));
  return asked[srun] = std::move(help.output);
}

bool knows_option(std::string_view help, std::string_view option) {
  return help.find(option) != std::string_view::npos;
}

Result<std::string> Srun::control_host() const {
  return meeting_address(traits_.interface, traits_.last_node);
}

}  // namespace ptrain::start
