#include "core/recipe/table/rows.h"

namespace ptrain::recipe::table {
namespace {

constexpr auto in_cluster = [](auto& recipe, std::size_t) -> auto& { return recipe.cluster; };
constexpr auto in_slurm = [](auto& recipe, std::size_t) -> auto& { return recipe.cluster.slurm; };
constexpr auto in_container = [](auto& recipe, std::size_t) -> auto& {
  return recipe.cluster.container;
};

void add_requests(std::vector<Field>& all) {
  append(all,
         row({.path = "cluster.slurm.nodes",
              .unit = "nodes",
              .range = {0, 65536},
              .description = "Nodes of the job; 0: one."},
             in_slurm, &Slurm::nodes),
         row({.path = "cluster.slurm.partition",
              .description = "Partition of the job; empty: the cluster's default."},
             in_slurm, &Slurm::partition),
         row({.path = "cluster.slurm.account", .description = "Account that the job is booked on."},
             in_slurm, &Slurm::account),
         row({.path = "cluster.slurm.qos", .description = "Quality of service."}, in_slurm,
             &Slurm::qos),
         row({.path = "cluster.slurm.time",
              .description = "Time limit as sbatch takes it: minutes, hours:minutes:seconds, "
                             "days-hours; empty: the partition's default."},
             in_slurm, &Slurm::time),
         row({.path = "cluster.slurm.gpus_per_node",
              .unit = "GPUs",
              .range = {0, 1024},
              .description = "GPUs of a node, one a rank."},
             in_slurm, &Slurm::gpus_per_node),
         row({.path = "cluster.slurm.constraint",
              .description = "Features that nodes must have, as sbatch takes them."},
             in_slurm, &Slurm::constraint),
         row({.path = "cluster.slurm.exclude",
              .description = "Nodes that the job must not get, such as node[3-4]."},
             in_slurm, &Slurm::exclude),
         row({.path = "cluster.slurm.comment", .description = "Comment of the job."}, in_slurm,
             &Slurm::comment),
         row({.path = "cluster.slurm.array",
              .description = "Jobs, each of which goes on where the one before it ended: a number, "
                             "or in the words of sbatch 1-N%1; empty: one job."},
             in_slurm, &Slurm::array),
         text_list({.path = "cluster.slurm.extra[]",
                    .description = "An argument of sbatch, such as --mail-type=END."},
                   in_slurm, &Slurm::extra));
}

}  // namespace

void add_slurm(std::vector<Field>& all) {
  add_requests(all);
  append(all,
         text_list({.path = "cluster.setup[]",
                    .description = "A line of shell, such as module load openmpi."},
                   in_cluster, &Cluster::setup),
         text_list({.path = "cluster.env[]", .description = "Name of a variable, never its value."},
                   in_cluster, &Cluster::env),
         row({.path = "cluster.container.image",
              .description = "Image that ranks of a Slurm job run in; empty: none."},
             in_container, &Container::image),
         choice<decltype(in_container), Container, ContainerRuntime>(
             {.path = "cluster.container.runtime",
              .description = "What runs the image: Slurm's plugin pyxis, or apptainer."},
             in_container, &Container::runtime,
             {{"pyxis", ContainerRuntime::kPyxis}, {"apptainer", ContainerRuntime::kApptainer}}),
         text_list({.path = "cluster.container.mounts[]",
                    .description = "A folder that ranks see inside too, as FOLDER or "
                                   "FOLDER:INSIDE, beside those that the run needs."},
                   in_container, &Container::mounts),
         choice<decltype(in_cluster), Cluster, RankLauncher>(
             {.path = "cluster.launcher",
              .description = "What starts ranks on the nodes of a Slurm job: srun, which takes "
                             "Slurm's plugin for PMIx, or Open MPI's mpirun, which does not."},
             in_cluster, &Cluster::launcher,
             {{"srun", RankLauncher::kSrun}, {"mpirun", RankLauncher::kMpirun}}),
         row({.path = "cluster.local_copy",
              .description = "Folder on a disk that each node has for itself, such as /tmp: the "
                             "nodes of a Slurm job copy ptrain, its engine and the libraries of "
                             "both there once, and start ranks from there; empty: no copy."},
             in_cluster, &Cluster::local_copy));
  append(all, row({.path = "cluster.interface",
                   .description = "Network interface, such as ib0, of the machine that starts the "
                                  "ranks, in whose network the nodes of a Slurm job meet; empty: "
                                  "the one on the way to the nodes by their names."},
                  in_cluster, &Cluster::interface));
}

}  // namespace ptrain::recipe::table
