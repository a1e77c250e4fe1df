#include "launcher/start/mpirun.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/uio.h>
#include <unistd.h>

#include <charconv>

#include "core/run/request.h"
#include "launcher/base/find_program.h"
#include "launcher/start/network.h"
#include "launcher/start/srun.h"

namespace ptrain::start {

namespace {

constexpr std::string_view kRemedy =
    "install Open MPI 4.1 or newer (Debian: apt-get install openmpi-bin libopenmpi-dev), or put "
    "its mpirun into PATH";

// The number that follows `key` in `text`, or `otherwise`.
int number_after(std::string_view text, std::string_view key, int otherwise) {
  const auto found = text.find(key);
  if (found == std::string_view::npos) return otherwise;
  auto rest = text.substr(found + key.size());
  const auto start = rest.find_first_not_of(' ');
  if (start == std::string_view::npos) return otherwise;
  rest.remove_prefix(start);
  int value = otherwise;
  std::from_chars(rest.data(), rest.data() + rest.size(), value);
  return value;
}

}  // namespace

bool can_read_memory_of_others() {
  char from = 1, to = 0;
  const iovec source{&from, 1}, target{&to, 1};
  return ::process_vm_readv(::getpid(), &target, 1, &source, 1, 0) == 1;
}

Result<int> mpirun_version(std::string_view output, const std::string& path) {
  constexpr std::string_view kName = "(Open MPI)";
  const auto line = output.substr(0, output.find('\n'));
  const int major = number_after(line, kName, 0);
  const int minor = number_after(line, fmt::format("{} {}.", kName, major), 0);
  if (major > 4 || (major == 4 && minor >= 1)) return major;
  return fail(ExitCode::kEnvironment,
              fmt::format("{} is not Open MPI 4.1 or newer; it says '{}'", path, line),
              std::string(kRemedy));
}

Result<Mpirun> Mpirun::find(const std::string& last_node, const std::string& interface) {
  const std::string path = base::find_program("mpirun");
  if (path.empty())
    return fail(ExitCode::kEnvironment, "no Open MPI: mpirun is not in PATH", std::string(kRemedy));
  PTRAIN_TRY(const base::Finished version, base::run_to_end({{path, "--version"}, {}}));
  PTRAIN_TRY(const int major, mpirun_version(version.output, path));
  return Mpirun(path, {major, ::geteuid() == 0, can_read_memory_of_others(), last_node, interface});
}

Result<std::string> Mpirun::control_host() const {
  return is_in_job() ? meeting_address(traits_.interface, traits_.last_node) : "127.0.0.1";
}

// On one machine Open MPI needs neither networks nor remote shells; looking for them costs it
// nearly half of its start (0.45 s against 0.25 s for two ranks, measured with 4.1.4).
std::vector<std::string> Mpirun::components() const {
  const bool four = traits_.major == 4;
  const std::string shared_memory = four ? "vader" : "sm";
  std::vector<std::string> result{"--mca", "pml", "ob1", "--mca", "btl", "self," + shared_memory};
  if (is_in_job()) result.back() += ",tcp";
  if (four && !is_in_job()) result.insert(result.end(), {"--mca", "plm", "isolated"});
  if (!traits_.single_copy)
    result.insert(result.end(),
                  {"--mca", "btl_" + shared_memory + "_single_copy_mechanism", "none"});
  return result;
}

// Ranks fill node after node, as plans place them. mpirun starts its daemons by srun, and passes on
// to ranks of other nodes only the variables that are named.
void Mpirun::place_on_nodes(const Launch& launch, base::Command& command) const {
  std::vector<std::string> hosts;
  for (const auto& node : launch.nodes)
    hosts.push_back(fmt::format("{}:{}", node, launch.num_ranks / launch.num_nodes));
  auto& words = command.arguments;
  if (!hosts.empty())
    words.insert(words.end(),
                 {"--host", fmt::format("{}", fmt::join(hosts, ",")), "--map-by", "slot"});
  for (const auto& [name, value] : command.environment) words.insert(words.end(), {"-x", name});
  // A step whose node is lost holds its CPUs until Slurm finds that out, minutes later.
  command.environment.emplace_back("SLURM_OVERLAP", "1");
}

base::Command Mpirun::command(const Launch& launch) const {
  base::Command command;
  command.environment = {{"OMP_NUM_THREADS", std::to_string(launch.threads)},
                         {"OMP_WAIT_POLICY", "passive"},
                         {run::kControlToken, launch.token}};
  // Ranks may outnumber the slots that mpirun counts; it then lets idle ranks yield by itself.
  command.arguments = {path_,       "-np", std::to_string(launch.num_ranks), "--oversubscribe",
                       "--bind-to", "none"};
  const auto chosen = components();
  command.arguments.insert(command.arguments.end(), chosen.begin(), chosen.end());
  if (is_in_job()) place_on_nodes(launch, command);
  command.arguments.insert(command.arguments.end(), launch.inside.begin(), launch.inside.end());
  command.arguments.insert(command.arguments.end(),
                           {launch.worker, "worker", "--request", launch.request_file});
  if (traits_.is_root) {
    command.environment.emplace_back("OMPI_ALLOW_RUN_AS_ROOT", "1");
    command.environment.emplace_back("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
  }
  return command;
}

LauncherReport Mpirun::report(std::string_view output) const {
  LauncherReport report = lost_nodes_in(output);  // of the srun that starts its daemons
  if (!report.lost_nodes.empty()) return report;
  const auto noticed = output.find("mpirun noticed that process rank ");
  if (noticed != std::string_view::npos) {
    const auto text = output.substr(noticed);
    report.rank = number_after(text, "process rank", -1);
    report.signal = number_after(text, "exited on signal", 0);
    return report;
  }
  const auto first = output.find("The first process to do so was:");
  if (first == std::string_view::npos) return report;
  const auto text = output.substr(first);
  report.rank = number_after(text, "],", -1);  // Process name: [[JOB,1],RANK]
  report.code = number_after(text, "Exit code:", 0);
  return report;
}

}  // namespace ptrain::start
