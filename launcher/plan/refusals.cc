#include "launcher/plan/refusals.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/program/offload_plan.h"

namespace ptrain::plan {

namespace {

using mesh::Layout;

constexpr double kMib = 1 << 20, kGib = 1 << 30;

// What the ranks of a full node keep waiting in the host's memory: beside GPUs, offloaded state.
std::int64_t waiting_bytes(const SearchInput& input, std::span<const Part> parts) {
  std::int64_t most = 0;
  for (const Part& part : parts) {
    const auto fullest = mesh::fullest_ranks(part.architecture, part.buffers);
    most =
        std::max(most, program::plan_offload(part.architecture, part.buffers, fullest).store_bytes);
  }
  return most * input.placement.ranks_per_node;
}

}  // namespace

Rejected too_large(const Layout& layout, std::int64_t bytes, std::int64_t memory, bool is_bound) {
  return {
      .layout = layout,
      .reason = "more memory than a rank may have",
      .detail = fmt::format("needs {}{:.0f} MiB a rank of {:.0f}", is_bound ? "at least " : "",
                            static_cast<double>(bytes) / kMib, static_cast<double>(memory) / kMib),
      .excess = static_cast<double>(bytes - memory),
      .is_bound = is_bound,
      .shortage = Shortage::kRankMemory};
}

std::optional<Rejected> waits_too_much(const SearchInput& input, const Layout& layout,
                                       std::span<const Part> parts) {
  if (!input.placement.on_gpus || layout.offload == recipe::Offload::kNone) return std::nullopt;
  const std::int64_t memory =
      std::ranges::min(input.cluster.nodes, {}, &cluster::Node::memory_bytes).memory_bytes;
  const std::int64_t bytes = waiting_bytes(input, parts);
  if (bytes <= memory) return std::nullopt;
  return Rejected{
      .layout = layout,
      .reason = "more offloaded state than a node has memory for",
      .detail = fmt::format("{:.0f} GiB wait in a node's {:.0f} GiB",
                            static_cast<double>(bytes) / kGib, static_cast<double>(memory) / kGib),
      .excess = static_cast<double>(bytes - memory),
      .shortage = Shortage::kNodeMemory};
}

std::optional<Rejected> too_long(const Layout& layout, std::int64_t work_to_compile) {
  if (work_to_compile <= kMostCompiled) return std::nullopt;
  return Rejected{.layout = layout,
                  .reason = "programs that are longer than can be compiled",
                  .detail = fmt::format("about {} million actions, of {} at most; larger "
                                        "micro-batches make fewer",
                                        work_to_compile / 1'000'000, kMostCompiled / 1'000'000),
                  .excess = static_cast<double>(work_to_compile - kMostCompiled)};
}

}  // namespace ptrain::plan
