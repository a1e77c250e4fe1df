#include "launcher/start/choose.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "launcher/base/find_program.h"
#include "launcher/cluster/slurm_command.h"
#include "launcher/start/mpirun.h"
#include "launcher/start/srun.h"

namespace ptrain::start {

namespace {

Result<std::unique_ptr<Backend>> in_job(const cluster::Allocation& allocation, int num_nodes,
                                        const Wanted& wanted) {
  PTRAIN_TRY(const auto nodes, cluster::allocated_nodes(allocation));
  PTRAIN_TRY(const auto cpus, cluster::cpus_of_nodes(allocation.cpus));
  if (nodes.size() >= static_cast<std::size_t>(num_nodes)) {
    if (wanted.launcher == recipe::RankLauncher::kMpirun) {
      PTRAIN_TRY(Mpirun mpirun, Mpirun::find(nodes.back(), wanted.interface));
      return std::make_unique<Mpirun>(std::move(mpirun));
    }
    const std::string srun = base::find_program("srun");
    PTRAIN_TRY(const std::string help, help_of(srun));
    return std::make_unique<Srun>(
        srun, Srun::Traits{nodes.back(), std::ranges::min(cpus), can_read_memory_of_others(),
                           knows_option(help, "--overlap"), knows_option(help, "--cpu-bind"),
                           knows_option(help, "--gpu-bind"), wanted.interface});
  }
  return fail(ExitCode::kEnvironment,
              fmt::format("the plan needs {} nodes, Slurm job {} has {}", num_nodes, allocation.job,
                          nodes.size()),
              "ask Slurm for as many nodes (--nodes), or let the recipe be planned for these");
}

}  // namespace

std::optional<cluster::Allocation> usable_allocation() {
  cluster::Allocation allocation = cluster::find_allocation();
  if (allocation.job.empty() || allocation.nodes.empty() || base::find_program("srun").empty())
    return {};
  if (allocation.nodes == allocation.here) return {};
  return allocation;
}

Result<std::unique_ptr<Backend>> choose_backend(int num_nodes, const Wanted& wanted) {
  if (const auto allocation = usable_allocation()) return in_job(*allocation, num_nodes, wanted);
  if (num_nodes > 1)
    return fail(ExitCode::kEnvironment,
                fmt::format("the plan needs {} nodes, and this is no Slurm job", num_nodes),
                fmt::format("start ptrain inside one (salloc --nodes={}, or in a script of "
                            "sbatch)",
                            num_nodes));
  PTRAIN_TRY(Mpirun mpirun, Mpirun::find());
  return std::make_unique<Mpirun>(std::move(mpirun));
}

base::Command on_each_node(const std::vector<std::string>& nodes) {
  const std::string srun = base::find_program("srun");
  base::Command command{
      {srun, "--mpi=none", fmt::format("--nodes={}", nodes.size()),
       fmt::format("--ntasks={}", nodes.size()), "--ntasks-per-node=1",
       fmt::format("--nodelist={}", fmt::join(nodes, ",")), "--export=ALL", "--input=none"},
      {}};
  if (const auto help = help_of(srun); help && knows_option(*help, "--overlap"))
    command.arguments.emplace_back("--overlap");
  return command;
}

Status check_pmix_plugin() {
  PTRAIN_TRY(const std::string listed, cluster::ask_slurm({"srun", "--mpi=list"}));
  if (listed.find("pmix") != std::string::npos) return {};
  return fail(ExitCode::kEnvironment,
              fmt::format("Slurm has no plugin pmix, by which ranks find each other; srun "
                          "--mpi=list says: {}",
                          listed),
              "ask who runs this cluster to install it (Debian: slurm-wlm-basic-plugins), or have "
              "mpirun start the ranks (cluster.launcher=mpirun)");
}

}  // namespace ptrain::start
