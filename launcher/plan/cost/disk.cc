#include "launcher/plan/cost/disk.h"

#include "core/program/offload_plan.h"

namespace ptrain::plan {

double disk_seconds(const program::Action& action, const CostContext& context) {
  using program::Kind;
  if (action.kind != Kind::kFetch && action.kind != Kind::kOffload) return 0;
  const auto group = static_cast<std::size_t>(action.group);
  const int shard = context.shards.of(context.architecture.groups[group]);
  const auto bytes = static_cast<double>(
      program::offloaded_bytes(context.architecture, context.buffers[group], shard));
  const cluster::DiskRate& disk = context.figures.disk;
  return bytes / (action.kind == Kind::kFetch ? disk.read_bytes_per_s : disk.write_bytes_per_s);
}

}  // namespace ptrain::plan
