#include "launcher/plan/cost/network.h"

#include <cstdlib>
#include <string>

#include "core/program/segments.h"

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

bool is_expert(int index, const CostContext& context) {
  return context.architecture.groups[static_cast<std::size_t>(index)].experts;
}

// The ranks that have shards of a parameter group.
Group shards_of(int index, const CostContext& context) {
  return group(is_expert(index, context) ? MeshAxis::kExpertShard : MeshAxis::kShard, context);
}

double unshard_seconds(const Action& action, const CostContext& context) {
  const auto& group = context.architecture.groups[static_cast<std::size_t>(action.group)];
  const double bytes =
      context.layout.shared_window ? 0 : buffer_bytes(action.group, group.compute_dtype, context);
  return all_gather_seconds(bytes, shards_of(action.group, context), context);
}

double reduce_seconds(const Action& action, const CostContext& context) {
  const double bytes = buffer_bytes(action.group, context.architecture.dtype, context);
  const Group shards = shards_of(action.group, context);
  const double over_shard = reduce_scatter_seconds(bytes, shards, context);
  if (action.attribute("axis") == "shard") return over_shard;
  const Group replicas =
      group(is_expert(action.group, context) ? MeshAxis::kExpertDp : MeshAxis::kDp, context);
  return over_shard + all_reduce_seconds(bytes / shards.size, replicas, context);
}

// What layers exchange is in no window.
Group by_messages(MeshAxis axis, const CostContext& context) {
  Group ranks = group(axis, context);
  ranks.by_messages = true;
  return ranks;
}

Group ranks_along(std::string_view axis, const CostContext& context) {
  if (axis == "ring") return by_messages(MeshAxis::kRing, context);
  if (axis == "ulysses") return by_messages(MeshAxis::kUlysses, context);
  if (axis == "ep") return by_messages(MeshAxis::kExperts, context);
  if (axis == "rows") return by_messages(MeshAxis::kRows, context);
  if (axis == "vocabulary") return by_messages(MeshAxis::kVocabulary, context);
  return by_messages(MeshAxis::kTp, context);
}

double tokens_of(const CostContext& context) {
  return static_cast<double>(context.layout.micro_batch * context.sequence / context.layout.cp);
}

// The ranks that hold the stream give their part of it to all others, or get as much from each.
double vocabulary_exchange_seconds(double bytes, const Group& ranks, const CostContext& context) {
  const double of_holder = bytes / context.layout.tp;
  return transfer_seconds(of_holder * (ranks.size - 1), ranks, Transfer::kGather, context);
}

// Of a layer's call: `token_bytes` of every token of the micro-batch.
double layer_exchange_seconds(const Action& action, const CostContext& context) {
  const double bytes = std::strtod(std::string(action.attribute("token_bytes")).c_str(), nullptr) *
                       tokens_of(context);
  const std::string_view kind = action.attribute("kind");
  Group ranks = ranks_along(action.attribute("axis"), context);
  if (kind == "arrival") return 0;
  if (action.attribute("axis") == "vocabulary")
    return vocabulary_exchange_seconds(bytes, ranks, context);
  if (kind == "reduce_scatter") return reduce_scatter_seconds(bytes, ranks, context);
  if (kind != "shift") return all_gather_seconds(bytes, ranks, context);
  ranks.size = 2;  // to one neighbour, from another
  return transfer_seconds(bytes, ranks, Transfer::kGather, context);
}

// Of a group: the gradients of what the ranks of the tensor axis all hold.
double sum_gradients_seconds(const Action& action, const CostContext& context) {
  std::int64_t elements = 0;
  for (const auto& parameter : context.architecture.parameters)
    if (parameter.group == action.group && parameter.sum_ranks > 1)
      elements += parameter.num_elements();
  const Group ranks = by_messages(MeshAxis::kTp, context);
  const double bytes = static_cast<double>(elements * size_of(context.architecture.dtype)) *
                       ranks.size / context.layout.num_shards();
  return all_gather_seconds(bytes, ranks, context);
}

double exchange_seconds(const Action& action, const CostContext& context) {
  return program::exchanges_within_call(action) ? layer_exchange_seconds(action, context)
                                                : sum_gradients_seconds(action, context);
}

// From one rank to the next stage's.
double send_seconds(const CostContext& context) {
  const model::Architecture& architecture = context.architecture;
  const double bytes = tokens_of(context) * static_cast<double>(architecture.config.hidden_size *
                                                                size_of(architecture.dtype));
  const Group pair{2, group(MeshAxis::kPp, context).level};
  return transfer_seconds(bytes, pair, Transfer::kGather, context);
}

double sync_tied_seconds(const Action& action, const CostContext& context) {
  const double bytes = buffer_bytes(action.group, context.architecture.dtype, context);
  const Group pair{2, group(MeshAxis::kPp, context).level};
  return all_reduce_seconds(bytes / context.layout.num_shards(), pair, context);
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
    case Kind::kSendForward:
    case Kind::kSendBackward:
      return send_seconds(context);
    case Kind::kSyncTied:
      return sync_tied_seconds(action, context);
    case Kind::kReduceGrad:
      return reduce_seconds(action, context);
    case Kind::kExchange:
      return exchange_seconds(action, context);
    case Kind::kGradNorm:
      return all_reduce_seconds(kNormBytes, group(MeshAxis::kWorld, context), context);
    default:
      return 0;
  }
}

}  // namespace ptrain::plan
