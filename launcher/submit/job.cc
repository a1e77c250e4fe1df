#include "launcher/submit/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "launcher/base/printable.h"
#include "launcher/base/subprocess.h"
#include "launcher/start/container.h"

namespace ptrain::submit {

namespace {

using recipe::Slurm;

struct Option {
  std::string_view field;
  std::string_view option;
  std::string Slurm::*value;
};
constexpr Option kOptions[] = {
    {"partition", "--partition", &Slurm::partition},
    {"account", "--account", &Slurm::account},
    {"qos", "--qos", &Slurm::qos},
    {"time", "--time", &Slurm::time},
    {"constraint", "--constraint", &Slurm::constraint},
    {"exclude", "--exclude", &Slurm::exclude},
    {"comment", "--comment", &Slurm::comment},
};

bool is_variable_name(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && std::ranges::all_of(name, fits) && !(name[0] >= '0' && name[0] <= '9');
}

tl::unexpected<Error> refused(const std::string& field, const std::string& why,
                              const std::string& hint) {
  return fail(ExitCode::kUsage, fmt::format("{}: {}", field, why), hint);
}

Status check_text(const std::string& field, const std::string& text) {
  if (printable(text) == text) return {};
  return refused(field, "line breaks and control characters are not allowed", "leave them out");
}

// A long option goes by any beginning of its name, a short one has its value at its letter.
bool may_mean(std::string_view argument, std::string_view option) {
  if (!option.starts_with("--")) return argument.starts_with(option);
  const std::string_view name = argument.substr(0, argument.find('='));
  return name.starts_with("--") && option.starts_with(name);
}

// What would make of the job something that ptrain cannot follow.
Status check_extra(const std::string& argument, std::size_t i) {
  const std::string field = fmt::format("cluster.slurm.extra.{}", i);
  PTRAIN_CHECK(check_text(field, argument));
  if (!argument.starts_with("-"))
    return refused(field, fmt::format("'{}' is no option of sbatch", argument),
                   "write option and value as one argument, such as --mail-type=END");
  constexpr std::string_view kForbidden[] = {
      "--array",    "-a",     "--wrap",   "--wait",   "-W",      "--test-only",
      "--parsable", "--hold", "--output", "-o",       "--chdir", "-D",
      "--nodes",    "-N",     "-H",       "--ntasks", "-n",      "--ntasks-per-node"};
  for (const auto bad : kForbidden)
    if (may_mean(argument, bad))
      return refused(
          field, fmt::format("{} would make another job of it than ptrain plans and follows", bad),
          "leave it out");
  return {};
}

// Slurm does not say how much memory a GPU has.
Status check_gpus(const recipe::Cluster& cluster) {
  if (cluster.slurm.gpus_per_node == 0 || !cluster.file.empty()) return {};
  return refused("cluster.slurm.gpus_per_node", "how much memory these GPUs have is not known here",
                 "name a cluster file with the GPUs of its nodes as cluster.file "
                 "(docs/cluster-file.md)");
}

Status check_container_of(const recipe::Cluster& cluster) {
  if (!start::needs_srun(cluster.container)) return {};
  if (cluster.slurm.nodes > 1 && cluster.launcher == recipe::RankLauncher::kSrun) return {};
  return refused("cluster.container.runtime",
                 "pyxis needs srun, and ranks of one node are started by mpirun",
                 "set runtime: apptainer, or ask for two nodes or more and launcher: srun");
}

std::string as_text(const std::string& path) {
  return base::to_text(base::Command{{path}, {}});  // quoted as a shell takes it
}

std::string setup_of(const recipe::Cluster& cluster) {
  if (cluster.setup.empty()) return "";
  const bool is_array = num_tasks(cluster.slurm) > 0;
  std::string out = "\n# cluster.setup of the recipe; a line that fails ends the job";
  out += is_array ? ", and takes the tasks that wait out of the queue.\ntrap 'scancel "
                    "--state=PENDING \"$SLURM_ARRAY_JOB_ID\"' EXIT\n"
                  : ".\n";
  out += "set -e\n";
  for (const auto& line : cluster.setup) out += line + "\n";
  return out + "set +e\n" + (is_array ? "trap - EXIT\n" : "");
}

}  // namespace

int num_tasks(const Slurm& slurm) { return recipe::num_tasks(slurm.array).value_or(0); }

bool asks_for_slurm(const recipe::Cluster& cluster) { return cluster.slurm != Slurm{}; }

std::vector<std::string> requests(const recipe::Cluster& cluster) {
  const Slurm& slurm = cluster.slurm;
  std::vector<std::string> out{fmt::format("--nodes={}", std::max(1, slurm.nodes))};
  for (const auto& option : kOptions)
    if (const auto& value = slurm.*option.value; !value.empty())
      out.push_back(fmt::format("{}={}", option.option, value));
  if (slurm.gpus_per_node > 0)
    out.push_back(fmt::format("--gpus-per-node={}", slurm.gpus_per_node));
  if (const int tasks = num_tasks(slurm); tasks > 0)
    out.push_back(fmt::format("--array=1-{}%1", tasks));
  out.insert(out.end(), slurm.extra.begin(), slurm.extra.end());
  return out;
}

// Whole nodes with all their memory, as the plan counts on. A lost node does not end the job: the
// supervisor decides; a lost supervisor does, and Slurm starts the job again, which continues.
std::vector<std::string> arguments_of(const Job& job) {
  std::vector<std::string> out{
      "--job-name=" + job.name,
      "--chdir=" + job.directory.root,
      fmt::format("--output=logs/slurm-{}.out", num_tasks(job.cluster.slurm) > 0 ? "%A_%a" : "%j"),
      "--open-mode=append",
      "--exclusive",
      "--mem=0",
      "--no-kill",
      "--requeue"};
  if (job.ranks_per_node > 0)
    out.push_back(fmt::format("--ntasks-per-node={}", job.ranks_per_node));
  const auto asked = requests(job.cluster);
  out.insert(out.end(), asked.begin(), asked.end());
  return out;
}

std::string quoted_argument(const std::string& argument) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%^[]";
  if (argument.find_first_not_of(kPlain) == std::string::npos) return argument;
  std::string out = "\"";
  for (const char c : argument) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string script_of(const Job& job) {
  std::string out = fmt::format(
      "#!/bin/bash\n"
      "# Trains the run in {}.\n"
      "# ptrain submits it with these options; by hand: sbatch {}\n",
      job.directory.root, as_text(job.directory.script()));
  for (const auto& argument : arguments_of(job))
    out += fmt::format("#SBATCH {}\n", quoted_argument(argument));
  out += setup_of(job.cluster);
  out += fmt::format(
      "\n# Starts the ranks, watches them, and writes the verdict. It takes this shell's place, so "
      "that\n# signals of Slurm reach it.\nexec {} supervise {}\n",
      as_text(job.program), as_text(job.directory.root));
  return out;
}

Status check_requests(const Job& job) {
  const recipe::Cluster& cluster = job.cluster;
  PTRAIN_CHECK(check_text("--directory", job.directory.root));
  PTRAIN_CHECK(check_text("the path of ptrain", job.program));
  for (const auto& option : kOptions)
    PTRAIN_CHECK(
        check_text(fmt::format("cluster.slurm.{}", option.field), cluster.slurm.*option.value));
  for (std::size_t i = 0; i < cluster.slurm.extra.size(); ++i)
    PTRAIN_CHECK(check_extra(cluster.slurm.extra[i], i));
  PTRAIN_CHECK(check_gpus(cluster));
  PTRAIN_CHECK(check_container_of(cluster));
  for (std::size_t i = 0; i < cluster.setup.size(); ++i)
    PTRAIN_CHECK(check_text(fmt::format("cluster.setup.{}", i), cluster.setup[i]));
  for (std::size_t i = 0; i < cluster.env.size(); ++i)
    if (!is_variable_name(cluster.env[i]))
      return refused(fmt::format("cluster.env.{}", i), "is no name of a variable",
                     "give names alone, such as HF_HOME; their values are taken from where ptrain "
                     "is called");
  return {};
}

}  // namespace ptrain::submit
