#include "launcher/cluster/host.h"

#include <hwloc.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "launcher/base/subprocess.h"

namespace ptrain::cluster {

namespace {

struct TopologyDeleter {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, TopologyDeleter>;

struct BitmapDeleter {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, BitmapDeleter>;

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

Result<Topology> load_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0)
    return fail(ExitCode::kEnvironment, "hwloc cannot start", "give the machine by --cluster FILE");
  Topology topology(raw);
  if (hwloc_topology_load(raw) != 0)
    return fail(ExitCode::kEnvironment, "hwloc cannot read this machine's topology",
                "give the machine by --cluster FILE");
  return topology;
}

// Cores with at least one hardware thread that this process is bound to.
int usable_cores(hwloc_topology_t topology) {
  Bitmap bound(hwloc_bitmap_alloc());
  if (hwloc_get_cpubind(topology, bound.get(), HWLOC_CPUBIND_PROCESS) != 0)
    hwloc_bitmap_copy(bound.get(), hwloc_topology_get_allowed_cpuset(topology));
  const auto count = [&](hwloc_obj_type_t type) {
    int usable = 0;
    for (hwloc_obj_t object = nullptr;
         (object = hwloc_get_next_obj_by_type(topology, type, object)) != nullptr;)
      usable += hwloc_bitmap_intersects(object->cpuset, bound.get());
    return usable;
  };
  const int cores = count(HWLOC_OBJ_CORE);
  return std::max(1, cores > 0 ? cores : count(HWLOC_OBJ_PU));
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

Gpus gpus_from_nvidia_smi(std::string_view text, const char* visible) {
  constexpr std::int64_t kMib = 1024 * 1024;
  Gpus gpus;
  std::istringstream lines{std::string(text)};
  for (std::int64_t mib = 0; lines >> mib && mib > 0; ++gpus.count)
    gpus.memory_bytes = gpus.count == 0 ? mib * kMib : std::min(gpus.memory_bytes, mib * kMib);
  if (visible == nullptr) return gpus;
  // Numbers or names, by commas; nothing, or what begins with -1, hides all.
  const std::string_view list(visible);
  const bool hides_all = list.empty() || list.starts_with("-1");
  const auto named = 1 + std::ranges::count(list, ',');
  gpus.count = hides_all ? 0 : std::min(gpus.count, static_cast<int>(named));
  return gpus;
}

namespace {

// Only where the driver is: nvidia-smi may take a second.
Gpus usable_gpus() {
  std::error_code error;
  const char* const program = "/usr/bin/nvidia-smi";
  if (!std::filesystem::exists("/proc/driver/nvidia/version", error) ||
      !std::filesystem::exists(program, error))
    return {};
  const auto answer = base::run_to_end(
      {{program, "--query-gpu=memory.total", "--format=csv,noheader,nounits"}, {}});
  if (!answer || answer->status != base::ExitStatus{}) return {};
  return gpus_from_nvidia_smi(answer->output, std::getenv("CUDA_VISIBLE_DEVICES"));
}

}  // namespace

Result<Cluster> this_host() {
  PTRAIN_TRY(const Topology topology, load_topology());
  Node node;
  node.name = "localhost";
  node.num_cores = usable_cores(topology.get());
  node.memory_bytes = static_cast<std::int64_t>(hwloc_get_root_obj(topology.get())->total_memory);
  for (const auto& group : control_groups()) {
    if (const auto cores = cores_from_cpu_max(read_text(group / "cpu.max")))
      node.num_cores = std::clamp(static_cast<int>(*cores), 1, node.num_cores);
    if (const auto bytes = bytes_from_memory_max(read_text(group / "memory.max")))
      node.memory_bytes = std::min(node.memory_bytes, *bytes);
  }
  const Gpus gpus = usable_gpus();
  node.num_gpus = gpus.count;
  node.gpu_memory_bytes = gpus.memory_bytes;
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
