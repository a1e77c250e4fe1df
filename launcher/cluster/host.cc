#include "launcher/cluster/host.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "launcher/cluster/gpus.h"
#include "launcher/cluster/topology.h"

namespace ptrain::cluster {

namespace {

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The folders of our control group and its parents under cgroup v2, innermost first: a limit of any
// binds us.
std::vector<std::filesystem::path> control_groups() {
  const std::filesystem::path root = "/sys/fs/cgroup";
  std::istringstream lines(read_text("/proc/self/cgroup"));
  std::vector<std::filesystem::path> groups{root};
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("0::/")) continue;
    for (auto path = root / line.substr(4); path != root && path.has_relative_path();
         path = path.parent_path())
      groups.push_back(path);
  }
  return groups;
}

}  // namespace

std::optional<double> cores_from_cpu_max(std::string_view text) {
  double quota = 0;
  double period = 0;
  std::istringstream stream{std::string(text)};
  if (!(stream >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

std::optional<std::int64_t> bytes_from_memory_max(std::string_view text) {
  std::int64_t bytes = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (result.ec != std::errc() || bytes <= 0) return std::nullopt;
  return bytes;
}

Result<Cluster> this_host() {
  PTRAIN_TRY(const Topology topology, Topology::find(Topology::Look::kCores));
  Node node;
  node.name = "localhost";
  node.num_cores = topology.usable_cores();
  node.memory_bytes = topology.memory_bytes();
  for (const auto& group : control_groups()) {
    if (const auto cores = cores_from_cpu_max(read_text(group / "cpu.max")))
      node.num_cores = std::clamp(static_cast<int>(*cores), 1, node.num_cores);
    if (const auto bytes = bytes_from_memory_max(read_text(group / "memory.max")))
      node.memory_bytes = std::min(node.memory_bytes, *bytes);
  }
  const auto gpus = gpus_here();
  node.num_gpus = static_cast<int>(gpus.size());
  if (!gpus.empty())
    node.gpu_memory_bytes = std::ranges::min(gpus, {}, &Gpu::memory_bytes).memory_bytes;
  return unmeasured("this machine", {node});
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

}  // namespace ptrain::cluster
