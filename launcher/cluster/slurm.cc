#include "launcher/cluster/slurm.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <sstream>

#include "launcher/base/find_program.h"
#include "launcher/cluster/host.h"
#include "launcher/cluster/hostlist.h"
#include "launcher/cluster/slurm_command.h"

namespace ptrain::cluster {

namespace {

constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::int64_t number_of(std::string_view text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// What scontrol tells of the nodes, a line each; nothing where there is none. One that fails is an
// error: a plan that counts on another memory than the nodes have would die of it later.
Result<std::vector<NodeFacts>> facts_of_nodes(const std::string& nodes) {
  std::vector<NodeFacts> facts;
  if (base::find_program("scontrol").empty()) return facts;
  const auto told = ask_slurm({"scontrol", "-o", "show", "node", nodes});
  if (!told)
    return fail(ExitCode::kEnvironment,
                "Slurm does not tell of the nodes of this job: " + told.error().message,
                "try again; where scontrol cannot work, take it out of PATH: nodes then count as "
                "like this machine");
  std::istringstream text(*told);
  for (std::string line; std::getline(text, line);) facts.push_back(node_facts(line));
  return facts;
}

// The last task of a job array has the array's own number, by which Slurm means all of its tasks.
std::string own_job() {
  const std::string job = variable("SLURM_JOB_ID"), task = variable("SLURM_ARRAY_TASK_ID");
  return task.empty() || job != variable("SLURM_ARRAY_JOB_ID") ? job : job + "_" + task;
}

}  // namespace

Allocation find_allocation() {
  return {own_job(),
          variable("SLURM_JOB_NODELIST"),
          static_cast<int>(number_of(variable("SLURM_JOB_NUM_NODES"))),
          variable("SLURM_JOB_CPUS_PER_NODE"),
          variable("SLURM_MEM_PER_NODE"),
          variable("SLURMD_NODENAME"),
          !(variable("SLURM_JOB_GPUS") + variable("SLURM_GPUS_ON_NODE")).empty(),
          number_of(variable("SLURM_JOB_END_TIME")),
          variable("SLURM_ARRAY_JOB_ID"),
          variable("SLURM_ARRAY_TASK_ID")};
}

Result<std::vector<std::string>> allocated_nodes(const Allocation& allocation) {
  return expand_hostlist(allocation.nodes);
}

Result<JobNow> ask_job(const std::string& job) {
  PTRAIN_TRY(const std::string shown, ask_slurm({"scontrol", "-o", "show", "job", job}));
  return job_in(shown);
}

Result<JobNow> job_in(std::string_view shown) {
  JobNow now{std::string(value_of(shown, "JobState")), {}};
  if (const auto list = value_of(shown, "NodeList"); list != "(null)") {
    PTRAIN_TRY(now.nodes, expand_hostlist(list));
  }
  return now;
}

std::vector<std::string> taken_nodes(const JobNow& now, std::vector<std::string> nodes) {
  if (now.state != kRunning || now.nodes.empty()) return {};
  std::erase_if(nodes, [&](const std::string& node) {
    return std::ranges::find(now.nodes, node) != now.nodes.end();
  });
  return nodes;
}

Result<std::vector<int>> cpus_of_nodes(std::string_view text) {
  const auto bad = [whole = std::string(text)] {
    return fail(ExitCode::kEnvironment,
                fmt::format("SLURM_JOB_CPUS_PER_NODE is '{}', which is no list of CPUs", whole));
  };
  std::vector<int> out;
  while (!text.empty()) {
    const auto part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const auto repeat = part.find("(x");
    const auto cpus = number_of(part.substr(0, repeat));
    const auto nodes = repeat == std::string_view::npos ? 1 : number_of(part.substr(repeat + 2));
    if (cpus < 1 || nodes < 1) return bad();
    out.insert(out.end(), static_cast<std::size_t>(nodes), static_cast<int>(cpus));
  }
  if (out.empty()) return bad();
  return out;
}

NodeFacts node_facts(std::string_view line) {
  constexpr std::string_view kName = "NodeName=";
  NodeFacts out;
  if (line.starts_with(kName)) out.name = line.substr(kName.size(), line.find(' ') - kName.size());
  out.threads_per_core = std::max(1, static_cast<int>(number_of(value_of(line, "ThreadsPerCore"))));
  const auto mebibytes = number_of(value_of(line, "RealMemory"));
  if (mebibytes > 1) out.memory_bytes = mebibytes * kMebibyte;  // 1: Slurm's default
  return out;
}

Result<Cluster> allocated_cluster(const Allocation& allocation) {
  PTRAIN_TRY(const auto names, allocated_nodes(allocation));
  PTRAIN_TRY(const auto told, facts_of_nodes(allocation.nodes));
  PTRAIN_TRY(const auto cpus, cpus_of_nodes(allocation.cpus));
  PTRAIN_TRY(const Cluster host, this_host());
  if (names.empty() || cpus.size() != names.size())
    return fail(
        ExitCode::kEnvironment,
        fmt::format("this Slurm job has {} nodes and the CPUs of {}", names.size(), cpus.size()),
        "unset SLURM_JOB_ID to use this machine alone");
  Cluster out{"slurm-" + variable("SLURM_CLUSTER_NAME"), {}, default_figures(), default_link()};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto found = std::ranges::find(told, names[i], &NodeFacts::name);
    const NodeFacts facts = found == told.end() ? NodeFacts{} : *found;
    Node node{names[i], std::max(1, cpus[i] / facts.threads_per_core)};
    node.memory_bytes = facts.memory_bytes > 0 ? facts.memory_bytes : host.nodes[0].memory_bytes;
    if (const auto limit = number_of(allocation.memory) * kMebibyte; limit > 0)
      node.memory_bytes = limit;
    out.nodes.push_back(std::move(node));
  }
  return out;
}

}  // namespace ptrain::cluster
