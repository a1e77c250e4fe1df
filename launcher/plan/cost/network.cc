#include "launcher/plan/cost/network.h"

namespace ptrain::plan {

namespace {

using program::Action;
using program::Kind;

double others_share(double bytes, const Group& group) {
  return bytes * (group.size - 1) / group.size;
}

Group group(MeshAxis axis, const CostContext& context) {
  return group_of(context.layout, context.placement, axis);
}

double buffer_bytes(int index, DType dtype, const CostContext& context) {
  const auto& buffer = context.buffers[static_cast<std::size_t>(index)];
  return static_cast<double>(buffer.total() * size_of(dtype));
}

double unshard_seconds(const Action& action, const CostContext& context) {
  const double bytes =
      context.layout.shared_window
          ? 0
          : buffer_bytes(action.group, context.architecture.compute_dtype, context);
  return all_gather_seconds(bytes, group(MeshAxis::kShard, context), context);
}

double reduce_seconds(const Action& action, const CostContext& context) {
  const double bytes = buffer_bytes(action.group, context.architecture.dtype, context);
  const double over_shard =
      reduce_scatter_seconds(bytes, group(MeshAxis::kShard, context), context);
  if (action.attribute("axis") == "shard") return over_shard;
  return over_shard +
         all_reduce_seconds(bytes / context.layout.shard, group(MeshAxis::kDp, context), context);
}

}  // namespace

double all_gather_seconds(double bytes, const Group& group, const CostContext& context) {
  return transfer_seconds(others_share(bytes, group), group, Transfer::kGather, context);
}

double reduce_scatter_seconds(double bytes, const Group& group, const CostContext& context) {
  return transfer_seconds(others_share(bytes, group), group, Transfer::kReduce, context);
}

double all_reduce_seconds(double bytes, const Group& group, const CostContext& context) {
  return reduce_scatter_seconds(bytes, group, context) + all_gather_seconds(bytes, group, context);
}

double network_seconds(const Action& action, const CostContext& context) {
  constexpr double kNormBytes = 16;  // square norm and token count
  switch (action.kind) {
    case Kind::kUnshard:
      return unshard_seconds(action, context);
    case Kind::kReduceGrad:
      return reduce_seconds(action, context);
    case Kind::kGradNorm:
      return all_reduce_seconds(kNormBytes, group(MeshAxis::kWorld, context), context);
    default:
      return 0;
  }
}

}  // namespace ptrain::plan
