#include "launcher/cluster/topology.h"

#include <hwloc.h>

#include <algorithm>

namespace ptrain::cluster {

namespace {

struct BitmapDeleter {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, BitmapDeleter>;

// The object and all that it lies in, up to the machine.
std::vector<hwloc_obj_t> line_of(hwloc_obj_t object) {
  std::vector<hwloc_obj_t> line;
  for (; object != nullptr; object = object->parent) line.push_back(object);
  return line;
}

// How far one goes up from the object of `line` until one is above `other` too.
std::size_t distance(const std::vector<hwloc_obj_t>& line, hwloc_obj_t other) {
  std::size_t least = line.size();
  for (const auto above : line_of(other)) {
    const auto found = std::ranges::find(line, above) - line.begin();
    least = std::min(least, static_cast<std::size_t>(found));
  }
  return least;
}

std::vector<hwloc_obj_t> rdma_devices(hwloc_topology_t topology) {
  std::vector<hwloc_obj_t> devices;
  for (hwloc_obj_t device = nullptr; (device = hwloc_get_next_osdev(topology, device)) != nullptr;)
    if (device->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS) devices.push_back(device);
  return devices;
}

std::vector<std::string> names_of(const std::vector<hwloc_obj_t>& objects) {
  std::vector<std::string> names;
  for (const auto object : objects) names.emplace_back(object->name);
  return names;
}

std::vector<std::string> nearest(hwloc_topology_t topology, hwloc_obj_t to) {
  const auto devices = rdma_devices(topology);
  if (to == nullptr || devices.empty()) return names_of(devices);
  const auto line = line_of(to);
  std::size_t least = line.size();
  for (const auto device : devices) least = std::min(least, distance(line, device));
  std::vector<hwloc_obj_t> near;
  for (const auto device : devices)
    if (distance(line, device) == least) near.push_back(device);
  return names_of(near);
}

}  // namespace

void Topology::Deleter::operator()(hwloc_topology* topology) const {
  hwloc_topology_destroy(topology);
}

Result<Topology> Topology::find(Look look) {
  constexpr const char* kRemedy =
      "give the machine as a cluster file (cluster.file), or leave the variable HWLOC_XMLFILE out "
      "if it is set";
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0)
    return fail(ExitCode::kEnvironment, "hwloc cannot start", kRemedy);
  Topology topology(raw);
  if (look == Look::kDevices)
    hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  if (hwloc_topology_load(raw) != 0)
    return fail(ExitCode::kEnvironment, "hwloc cannot read this machine's topology", kRemedy);
  return topology;
}

int Topology::usable_cores() const {
  const auto topology = topology_.get();
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

std::int64_t Topology::memory_bytes() const {
  return static_cast<std::int64_t>(hwloc_get_root_obj(topology_.get())->total_memory);
}

int Topology::num_nvidia_gpus() const {
  constexpr unsigned kNvidia = 0x10de, kVga = 0x0300, k3d = 0x0302;
  int count = 0;
  for (hwloc_obj_t device = nullptr;
       (device = hwloc_get_next_pcidev(topology_.get(), device)) != nullptr;) {
    const auto& pci = device->attr->pcidev;
    count += pci.vendor_id == kNvidia && (pci.class_id == kVga || pci.class_id == k3d);
  }
  return count;
}

std::vector<std::string> Topology::nics() const { return names_of(rdma_devices(topology_.get())); }

std::vector<std::string> Topology::nics_near_device(const std::string& bus_id) const {
  return nearest(topology_.get(), hwloc_get_pcidev_by_busidstring(topology_.get(), bus_id.c_str()));
}

std::vector<std::string> Topology::nics_near_cores(int first, int count) const {
  const auto topology = topology_.get();
  Bitmap cores(hwloc_bitmap_alloc());
  for (int i = first; i < first + count; ++i)
    if (const auto core = hwloc_get_obj_by_type(topology, HWLOC_OBJ_CORE, static_cast<unsigned>(i)))
      hwloc_bitmap_or(cores.get(), cores.get(), core->cpuset);
  if (hwloc_bitmap_iszero(cores.get())) return nics();
  return nearest(topology, hwloc_get_obj_covering_cpuset(topology, cores.get()));
}

}  // namespace ptrain::cluster
