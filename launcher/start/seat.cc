#include "launcher/start/seat.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace ptrain::start {

namespace {

bool is_set(const char* name) { return std::getenv(name) != nullptr; }

// Looking for devices is not free, and most machines have none of these.
bool may_have_nics() {
  std::error_code error;
  const bool none = std::filesystem::is_empty("/sys/class/infiniband", error) || error;
  return is_set("HWLOC_XMLFILE") || !none;
}

}  // namespace

Seat seat_of(const Place& place, const cluster::Topology& topology,
             const std::vector<cluster::Gpu>& visible) {
  Seat seat;
  const auto number = static_cast<std::size_t>(place.gpu);
  if (place.gpu < 0) {
    seat.nics = topology.nics_near_cores(place.slot * place.threads, place.threads);
  } else if (number < visible.size()) {
    seat.gpu = fmt::format("GPU {} ({})", visible[number].number, visible[number].bus_id);
    seat.nics = topology.nics_near_device(visible[number].bus_id);
  } else {
    seat.gpu = fmt::format("GPU {}", place.gpu);
    seat.nics = topology.nics();
  }
  seat.nics_differ = seat.nics.size() < topology.nics().size();
  return seat;
}

std::vector<Seat> seats_here(const std::vector<Place>& places) {
  std::vector<Seat> seats(places.size());
  for (std::size_t i = 0; i < places.size(); ++i)
    if (places[i].gpu >= 0) seats[i].gpu = fmt::format("GPU {}", places[i].gpu);
  const bool on_gpus = std::ranges::any_of(places, [](const Place& one) { return one.gpu >= 0; });
  if (!on_gpus && !may_have_nics()) return seats;
  const auto topology = cluster::Topology::find(cluster::Topology::Look::kDevices);
  if (!topology) return seats;
  const auto visible = on_gpus ? cluster::gpus_here() : std::vector<cluster::Gpu>{};
  std::ranges::transform(places, seats.begin(),
                         [&](const Place& one) { return seat_of(one, *topology, visible); });
  return seats;
}

Seat seat_here(const Place& place) { return seats_here({place}).front(); }

std::string to_text(const Seat& seat) {
  std::string text = seat.gpu;
  if (!seat.nics.empty())
    text += fmt::format("{}NIC{} {}", text.empty() ? "" : ", ", seat.nics.size() == 1 ? "" : "s",
                        fmt::join(seat.nics, ", "));
  return text;
}

// NCCL finds the NICs nearest to each GPU itself, and takes it badly when ranks of one node are
// told of different ones (NVIDIA/nccl#1478) or see one GPU each (NVIDIA/nccl#1066).
Variables variables_of(const Seat& seat, const std::string& interface) {
  Variables out;
  // Else CUDA counts from the fastest GPU on, nvidia-smi by the bus.
  if (!seat.gpu.empty()) out.emplace_back("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
  if (interface.empty()) return out;
  if (!seat.gpu.empty()) out.emplace_back("NCCL_SOCKET_IFNAME", "=" + interface);
  // Open MPI would try every network that two nodes seem to share, such as one of containers.
  out.emplace_back("OMPI_MCA_btl_tcp_if_include", interface);
  if (seat.nics_differ)
    out.emplace_back("UCX_NET_DEVICES", fmt::format("{}:1", fmt::join(seat.nics, ":1,")));
  return out;
}

Variables set_variables(const Variables& variables) {
  Variables set;
  for (const auto& [name, value] : variables) {
    // Open MPI refuses both in one.
    const bool excludes =
        name == "OMPI_MCA_btl_tcp_if_include" && is_set("OMPI_MCA_btl_tcp_if_exclude");
    if (is_set(name.c_str()) || excludes) continue;
    ::setenv(name.c_str(), value.c_str(), 0);
    set.emplace_back(name, value);
  }
  return set;
}

}  // namespace ptrain::start
