#include "launcher/submit/login_node.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "core/base/error_line.h"
#include "launcher/cluster/hostlist.h"
#include "launcher/cluster/slurm_command.h"

namespace ptrain::submit {

namespace {

using recipe::Slurm;

tl::unexpected<Error> refused(std::string message, std::string hint) {
  return fail(ExitCode::kUsage, std::move(message), std::move(hint));
}

bool is_one_word(std::string_view constraint) {
  return constraint.find_first_of("&|[]()*, ") == std::string_view::npos;
}

bool fits(const NodeLine& node, const LoginNode& seen, const Partition& partition,
          const Slurm& slurm) {
  const auto holds = [](const std::vector<std::string>& words, const std::string& word) {
    return std::ranges::find(words, word) != words.end();
  };
  if (!holds(node.partitions, partition.name) || holds(seen.excluded, node.name)) return false;
  return slurm.constraint.empty() || !is_one_word(slurm.constraint) ||
         holds(node.features, slurm.constraint);
}

std::string names_of(const std::vector<Partition>& partitions) {
  std::vector<std::string> names;
  for (const auto& one : partitions) names.push_back(one.name + (one.is_default ? "*" : ""));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string cluster_name(std::string_view config) {
  const auto found = config.find("ClusterName");
  if (found == std::string_view::npos) return "";
  std::istringstream line{std::string(config.substr(found, config.find('\n', found) - found))};
  std::string key, equals, name;
  line >> key >> equals >> name;
  return name;
}

Status check_partition(const LoginNode& seen, const Slurm& slurm) {
  const Partition* partition = partition_of(seen, slurm);
  if (partition == nullptr && slurm.partition.empty())
    return refused("this cluster has no default partition",
                   "name one with --partition: " + names_of(seen.partitions));
  if (partition == nullptr)
    return refused(fmt::format("cluster.slurm.partition: there is no '{}'", slurm.partition),
                   fmt::format("there are {} (* is the default)", names_of(seen.partitions)));
  if (!partition->is_up)
    return refused(fmt::format("partition '{}' takes no jobs to run now", partition->name),
                   "choose another with --partition, or ask who runs this cluster");
  const auto& accounts = partition->accounts;
  const bool allowed = accounts.empty() || slurm.account.empty() ||
                       std::ranges::find(accounts, slurm.account) != accounts.end();
  if (allowed) return {};
  return refused(fmt::format("cluster.slurm.account: partition '{}' is not for account '{}'",
                             partition->name, slurm.account),
                 fmt::format("its accounts are {}", fmt::join(accounts, ", ")));
}

Status check_time(const Partition& partition, const Slurm& slurm) {
  if (slurm.time.empty()) return {};
  const auto asked = time_limit(slurm.time);
  if (!asked)
    return refused(fmt::format("cluster.slurm.time: '{}' is no time that Slurm knows", slurm.time),
                   "write minutes, hours:minutes:seconds, or days-hours");
  const auto longest = time_limit(partition.longest);
  if (!longest || *asked <= *longest) return {};
  return refused(fmt::format("cluster.slurm.time: {} is beyond the limit of partition '{}', {}; "
                             "Slurm would let the job wait for ever (PartitionTimeLimit)",
                             slurm.time, partition.name, partition.longest),
                 "ask for less with --time; a run goes on in a further job with `ptrain resume`");
}

std::vector<NodeLine> fitting_nodes(const LoginNode& seen, const Partition& partition,
                                    const Slurm& slurm) {
  std::vector<NodeLine> out;
  std::ranges::copy_if(seen.nodes, std::back_inserter(out),
                       [&](const NodeLine& node) { return fits(node, seen, partition, slurm); });
  return out;
}

int num_fitting(const LoginNode& seen, const Partition& partition, const Slurm& slurm) {
  return static_cast<int>(fitting_nodes(seen, partition, slurm).size());
}

// "2 idle, 1 busy, 1 down".
std::string states_text(const std::vector<NodeLine>& nodes) {
  constexpr std::pair<NodeState, const char*> kWords[] = {{NodeState::kIdle, "idle"},
                                                          {NodeState::kBusy, "busy"},
                                                          {NodeState::kDrained, "drained"},
                                                          {NodeState::kDown, "down"}};
  std::string text;
  for (const auto& [state, word] : kWords)
    if (const auto count = std::ranges::count(nodes, state, &NodeLine::state))
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, word);
  return text;
}

// Of a job in this partition, `there` of whose nodes fit.
int most_nodes(const Partition& partition, int there) {
  return partition.most_nodes > 0 ? std::min(partition.most_nodes, there) : there;
}

// Where a job of `asked` nodes could go as it is.
std::string larger_partitions(const LoginNode& seen, const Slurm& slurm, int asked) {
  std::string text;
  for (const Partition& one : seen.partitions)
    if (const int most = most_nodes(one, num_fitting(seen, one, slurm)); one.is_up && most >= asked)
      text += fmt::format("{}{} gives up to {}", text.empty() ? "" : ", ", one.name, most);
  return text.empty() ? "" : fmt::format(" ({})", text);
}

Status check_nodes(const LoginNode& seen, const Partition& partition, const Slurm& slurm) {
  const int asked = std::max(1, slurm.nodes);
  const int there = num_fitting(seen, partition, slurm);
  const int most = most_nodes(partition, there);
  if (asked <= most) return {};
  std::string why = fmt::format("partition '{}' has {} ({})", partition.name, partition.num_nodes,
                                states_text(fitting_nodes(seen, partition, {})));
  if (there < partition.num_nodes) why += fmt::format(", {} of them as asked for", there);
  if (partition.most_nodes > 0) why += fmt::format(", at most {} a job", partition.most_nodes);
  const std::string fewer = most > 0 ? fmt::format("{} or fewer", most) : "others";
  return refused(fmt::format("cluster.slurm.nodes: {} nodes, but {}", asked, why),
                 fmt::format("ask for {} with --nodes, or for another --partition{}", fewer,
                             larger_partitions(seen, slurm, asked)));
}

}  // namespace

Result<LoginNode> probe(const Slurm& slurm) {
  LoginNode seen;
  PTRAIN_TRY(const std::string partition_text,
             cluster::ask_slurm({"scontrol", "-o", "show", "partition"}));
  seen.partitions = partitions(partition_text);
  PTRAIN_TRY(const std::string node_text, cluster::ask_slurm({"scontrol", "-o", "show", "node"}));
  seen.nodes = node_lines(node_text);
  PTRAIN_TRY(const std::string config, cluster::ask_slurm({"scontrol", "show", "config"}));
  seen.cluster = cluster_name(config);
  PTRAIN_TRY(seen.mpi_plugins, cluster::ask_slurm({"srun", "--mpi=list"}));
  PTRAIN_TRY(seen.srun_help, cluster::ask_slurm({"srun", "--help"}));
  // What is no list of names sbatch refuses, in its own words.
  if (auto names = cluster::expand_hostlist(slurm.exclude)) seen.excluded = std::move(*names);
  return seen;
}

const Partition* partition_of(const LoginNode& seen, const Slurm& slurm) {
  const auto found = std::ranges::find_if(seen.partitions, [&](const Partition& one) {
    return slurm.partition.empty() ? one.is_default : one.name == slurm.partition;
  });
  return found == seen.partitions.end() ? nullptr : &*found;
}

std::vector<NodeLine> nodes_for(const LoginNode& seen, const Slurm& slurm) {
  const Partition* partition = partition_of(seen, slurm);
  if (partition == nullptr) return {};
  const auto all = fitting_nodes(seen, *partition, slurm);
  std::vector<NodeLine> usable;
  std::ranges::copy_if(all, std::back_inserter(usable), is_usable);
  return static_cast<int>(usable.size()) >= std::max(1, slurm.nodes) ? usable : all;
}

std::string wait_of(const LoginNode& seen, const Slurm& slurm) {
  const Partition* partition = partition_of(seen, slurm);
  if (partition == nullptr) return "";
  const int asked = std::max(1, slurm.nodes);
  const auto all = fitting_nodes(seen, *partition, slurm);
  const auto idle = std::ranges::count(all, NodeState::kIdle, &NodeLine::state);
  if (idle >= asked) return "";
  const auto usable = std::ranges::count_if(all, is_usable);
  return fmt::format(
      "partition '{}' has {} nodes that the job could get ({}): it waits until {} are {}",
      partition->name, all.size(), states_text(all), asked,
      usable >= asked ? "idle"
      : idle > 0      ? fmt::format("up; {} or fewer (--nodes) could start now", idle)
                      : "up");
}

Status check(const LoginNode& seen, const Slurm& slurm) {
  PTRAIN_CHECK(check_partition(seen, slurm));
  const Partition& partition = *partition_of(seen, slurm);
  PTRAIN_CHECK(check_time(partition, slurm));
  return check_nodes(seen, partition, slurm);
}

Status check_plugins(const LoginNode& seen, const recipe::Cluster& cluster) {
  if (cluster.slurm.nodes <= 1 || cluster.launcher != recipe::RankLauncher::kSrun) return {};
  if (seen.mpi_plugins.find("pmix") != std::string::npos) return {};
  return fail(ExitCode::kEnvironment,
              "Slurm on this cluster lacks its plugin for PMIx (`srun --mpi=list`), by which ranks "
              "on several nodes find each other",
              "set cluster.launcher=mpirun where Open MPI is on all nodes, ask who runs this "
              "cluster to install the plugin, or train on one node (--nodes=1)");
}

std::string explanation(const LoginNode& seen, const Slurm& slurm, const std::string& refusal) {
  if (const auto status = check(seen, slurm); !status) return error_line(status.error());
  const auto says = [&](std::string_view words) {
    return refusal.find(words) != std::string::npos;
  };
  const bool lacks_nodes = slurm.gpus_per_node > 0 && says("node configuration");
  if (says("generic resource") || says("gres") || lacks_nodes)
    return "cluster.slurm.gpus_per_node: this cluster has no nodes with as many GPUs; `sinfo -o "
           "'%P %G'` shows which there are";
  if (says("feature")) return "cluster.slurm.constraint: `sinfo -o '%N %f'` shows the features";
  if (says("array"))
    return "cluster.slurm.array: `scontrol show config` tells how many tasks an array may have, as "
           "MaxArraySize";
  if (says("account"))
    return "cluster.slurm.account: `sacctmgr show associations user=$USER` shows yours";
  if (says("QOS") || says("qos")) return "cluster.slurm.qos: `sacctmgr show qos` shows which exist";
  if (says("node name")) return "cluster.slurm.exclude: `sinfo -N` shows the nodes";
  return "";
}

cluster::Cluster planned_nodes(const LoginNode& seen, const Slurm& slurm, std::int64_t memory_bytes,
                               std::vector<std::string>& notes) {
  const auto candidates = nodes_for(seen, slurm);
  cluster::Node least{"", candidates.front().cores};
  bool differ = false;
  for (const auto& one : candidates) {
    const auto memory = one.memory_bytes > 0 ? one.memory_bytes : memory_bytes;
    if (least.memory_bytes == 0) least.memory_bytes = memory;
    differ = differ || one.cores != least.num_cores || memory != least.memory_bytes;
    least.num_cores = std::min(least.num_cores, one.cores);
    least.memory_bytes = std::min(least.memory_bytes, memory);
  }
  if (differ)
    notes.push_back(
        fmt::format("nodes of the partition differ: planned for the least of them, {} cores and "
                    "{:.0f} GiB; --constraint or --exclude narrows them",
                    least.num_cores, static_cast<double>(least.memory_bytes) / 1024 / 1024 / 1024));
  cluster::Cluster out{
      "slurm-" + seen.cluster, {}, cluster::default_figures(), cluster::default_link()};
  for (int i = 1; i <= std::max(1, slurm.nodes); ++i) {
    least.name = fmt::format("any-{}", i);
    out.nodes.push_back(least);
  }
  return out;
}

}  // namespace ptrain::submit
