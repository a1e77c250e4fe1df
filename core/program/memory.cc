#include "core/program/memory.h"

#include <algorithm>
#include <cmath>

#include "core/base/divide.h"
#include "core/mesh/state_plan.h"
#include "core/model/optimizer_state.h"
#include "core/model/slice.h"
#include "core/program/gradient_places.h"
#include "core/program/offload_plan.h"
#include "core/program/reads.h"
#include "core/program/segments.h"
#include "core/program/temporary.h"

namespace ptrain::program {
namespace {

// Bytes that an element of the own shard of a group takes, for good.
std::int64_t parameter_bytes(const MemoryContext& context, int group) {
  const DType dtype = context.architecture.dtype, compute = context.group(group).compute_dtype;
  const bool gathers = mesh::num_shards_of(context.group(group), context.layout) > 1 &&
                       !context.layout.shared_window;
  return size_of(dtype) + (compute == dtype || gathers ? 0 : size_of(compute));
}

// The validator refuses other words.
Keep keep_in(const Action& action, std::string_view attribute) {
  return keep_named(action.attribute(attribute)).value_or(Keep::kNone);
}

std::size_t index(MemoryClass memory_class) { return static_cast<std::size_t>(memory_class); }

std::int64_t bytes_of(const MemoryContext& context, const model::StashTensor& tensor) {
  const std::int64_t rows = tensor.rows == model::StashRows::kExperts
                                ? expert_rows(context)
                                : context.architecture.rows_of(tensor, context.tokens());
  return rows * tensor.elements_per_token * size_of(tensor.dtype);
}

}  // namespace

std::int64_t total_bytes(const BytesByClass& bytes) {
  std::int64_t total = 0;
  for (const Bytes& one : bytes) total += one.value;
  return total;
}

std::int64_t expert_rows(const MemoryContext& context) {
  const model::Architecture& part = context.architecture;
  const std::int64_t most = part.most_expert_rows(context.tokens());
  if (context.expert_load == 0) return most;
  const std::int64_t even =
      part.stream_rows(context.tokens()) * part.decoder.moe.top_k * part.experts.etp;
  return std::min(
      most, static_cast<std::int64_t>(std::ceil(context.expert_load * static_cast<double>(even))));
}

std::int64_t stash_bytes(const MemoryContext& context, const model::LayerSpec& layer, Keep keep) {
  std::int64_t bytes = 0;
  for (const model::StashTensor& tensor : layer.stash)
    if (keeps(keep, tensor)) bytes += bytes_of(context, tensor);
  return bytes;
}

std::int64_t stash_bytes_for_weights(const MemoryContext& context, const model::LayerSpec& layer) {
  std::int64_t bytes = 0;
  for (const model::StashTensor& tensor : layer.stash)
    if (context.architecture.is_for_weights(tensor)) bytes += bytes_of(context, tensor);
  return bytes;
}

std::string_view to_string(MemoryClass memory_class) {
  switch (memory_class) {
    case MemoryClass::kParameters:
      return "parameters";
    case MemoryClass::kGradients:
      return "gradients";
    case MemoryClass::kOptimizer:
      return "optimizer";
    case MemoryClass::kGather:
      return "gather";
    case MemoryClass::kStash:
      return "stash";
    case MemoryClass::kCheckpoint:
      return "checkpoint";
    case MemoryClass::kTemporary:
      return "temporary";
    case MemoryClass::kCommunication:
      return "communication";
    case MemoryClass::kRuntime:
      return "runtime";
  }
  return "";
}

Bytes copy_bytes(const MemoryContext& context) {
  constexpr std::int64_t kAlignment = 8;
  std::int64_t bytes = 0;
  for (const mesh::BufferPlan& buffer : context.buffers) {
    std::vector<mesh::ShardRun> runs = buffer.runs(context.shards.of(context.group(buffer.group)));
    std::erase_if(runs, [&](const mesh::ShardRun& run) {
      return !context.architecture.parameters[static_cast<std::size_t>(run.parameter)].counts;
    });
    bytes += mesh::plan_state(context.architecture, runs).bytes;
    for (const mesh::ShardRun& run : runs) {
      const auto& parameter =
          context.architecture.parameters[static_cast<std::size_t>(run.parameter)];
      bytes += round_up((run.end - run.begin) * size_of(context.architecture.dtype), kAlignment);
      const bool begins = model::begins_whole(parameter, run.begin);
      if (begins && model::counts_steps(parameter.rule)) bytes += kAlignment;
    }
  }
  return {bytes};
}

BytesByClass persistent_bytes(const MemoryContext& context) {
  std::int64_t parameters = 0, state = 0;       // bytes
  std::int64_t shard_sums = 0, whole_sums = 0;  // gradients that outlive a micro-batch
  for (const mesh::BufferPlan& buffer : context.buffers) {
    const model::GroupSpec& group = context.group(buffer.group);
    const int shard = context.shards.of(group);
    const std::int64_t elements = buffer.shard_sizes[static_cast<std::size_t>(shard)];
    parameters += elements * parameter_bytes(context, buffer.group);
    state += mesh::plan_state(context.architecture, buffer.runs(shard)).bytes;
    if (mesh::shards_gradients(group, context.layout)) {
      shard_sums += elements;
    } else {
      whole_sums += buffer.total();
    }
  }
  if (context.layout.offload == recipe::Offload::kOptimizer)
    state = plan_offload(context.architecture, context.buffers, context.shards).ring_bytes();
  if (context.layout.shared_window) whole_sums = place_gradients(context).elements;
  const std::int64_t gradients = shard_sums + whole_sums;
  const std::int64_t element = size_of(context.architecture.dtype);
  BytesByClass bytes{};
  bytes[index(MemoryClass::kParameters)] = {parameters};
  bytes[index(MemoryClass::kOptimizer)] = {state};
  bytes[index(MemoryClass::kGradients)] = {gradients * element};
  const bool resident = context.layout.offload == recipe::Offload::kNone;
  if (context.keeps_copy && resident) bytes[index(MemoryClass::kCheckpoint)] = copy_bytes(context);
  return bytes;
}

MemoryMeter::MemoryMeter(const MemoryContext& context)
    : context_(context), live_(persistent_bytes(context)), peak_(live_) {}

void MemoryMeter::take(MemoryClass memory_class, std::int64_t bytes) {
  Bytes& live = live_[index(memory_class)];
  live += Bytes{bytes};
  peak_[index(memory_class)] = std::max(peak_[index(memory_class)], live);
}

bool MemoryMeter::takes_gradients(int group) const {
  return mesh::shards_gradients(context_.group(group), context_.layout) &&
         !context_.layout.shared_window;
}

std::int64_t MemoryMeter::whole_bytes(int group, DType dtype) const {
  return context_.buffers[static_cast<std::size_t>(group)].total() * size_of(dtype);
}

const model::LayerSpec& MemoryMeter::layer(const Action& action) const {
  return context_.architecture.layers[static_cast<std::size_t>(action.layer_first)];
}

void MemoryMeter::add_to_stash(const Action& action, std::int64_t bytes) {
  stashes_[{action.layer_first, action.micro_batch}] += bytes;
  take(MemoryClass::kStash, bytes);
}

void MemoryMeter::take_stash(const Action& action, Keep before, Keep after) {
  add_to_stash(action, stash_bytes(context_, layer(action), after) -
                           stash_bytes(context_, layer(action), before));
}

void MemoryMeter::give_stash(const Action& action) {
  const auto stash = stashes_.find({action.layer_first, action.micro_batch});
  if (stash == stashes_.end()) return;
  take(MemoryClass::kStash, -stash->second);
  stashes_.erase(stash);
}

void MemoryMeter::end_input(const Action& action) {
  if (layer(action).kind != model::LayerKind::kBlock) return give_stash(action);
  add_to_stash(action, stash_bytes_for_weights(context_, layer(action)) -
                           stash_bytes(context_, layer(action), Keep::kAll));
  add_to_stash(action, queued_bytes(context_, layer(action)));
}

void MemoryMeter::begin_write(const Action& action) {
  for (const int group : groups_written(action, context_.architecture))
    if (takes_gradients(group) && held_gradients_.insert(group).second)
      take(MemoryClass::kGradients, whole_bytes(group, context_.architecture.dtype));
}

bool MemoryMeter::only_shares(const Action& action) const {
  return layer_of(action) >= 0 && !context_.architecture.has_stream(layer(action));
}

void MemoryMeter::take_stream(int count) {
  const std::int64_t tokens = context_.tokens();
  const std::int64_t rows = context_.architecture.stream_rows(tokens);
  take(MemoryClass::kCommunication, count * rows * context_.architecture.config.hidden_size *
                                        size_of(context_.architecture.dtype));
}

void MemoryMeter::begin_streams(const Action& action) {
  using model::LayerKind;
  if (!is_pipeline()) return;
  for (const int id : action.after)
    if (sends_.erase(id) > 0) take_stream(-1);
  if (only_shares(action)) return;
  switch (action.kind) {
    case Kind::kReceiveForward:
    case Kind::kReceiveBackward:
      return take_stream(1);
    case Kind::kForward:
      return layer(action).kind == LayerKind::kHead ? void() : take_stream(1);
    case Kind::kBackward:
    case Kind::kBackwardInput:
      return layer(action).kind == LayerKind::kHead ? take_stream(1) : void();
    default:
      return;
  }
}

void MemoryMeter::end_streams(const Action& action) {
  using model::LayerKind;
  if (!is_pipeline() || only_shares(action)) return;
  switch (action.kind) {
    case Kind::kSendForward:
    case Kind::kSendBackward:
      sends_.insert(action.id);
      return;
    case Kind::kForward:
      return layer(action).kind == LayerKind::kEmbedding ? void() : take_stream(-1);
    case Kind::kBackward:
    case Kind::kBackwardInput:
      return layer(action).kind == LayerKind::kEmbedding ? take_stream(-1) : void();
    default:
      return;
  }
}

void MemoryMeter::begin(const Action& action) {
  for (int id : action.after) {
    const auto reduction = reductions_.find(id);
    if (reduction == reductions_.end()) continue;
    held_gradients_.erase(reduction->second);
    take(MemoryClass::kGradients, -whole_bytes(reduction->second, context_.architecture.dtype));
    reductions_.erase(reduction);
  }
  if (!begins_call(action)) return;
  begin_streams(action);
  if (action.kind == Kind::kUnshard && gathers())
    take(MemoryClass::kGather, gathered_bytes_of(action.group));
  if (action.kind == Kind::kRecompute) take_stash(action, keep_in(action, "from"), Keep::kAll);
  if (action.kind == Kind::kForward) take_stash(action, Keep::kNone, keep_in(action, "keep"));
  begin_write(action);
}

void MemoryMeter::end(const Action& action) {
  if (!ends_call(action, context_.architecture)) return;
  end_streams(action);
  if (action.kind == Kind::kReshard && gathers())
    take(MemoryClass::kGather, -gathered_bytes_of(action.group));
  if (action.kind == Kind::kReduceGrad && takes_gradients(action.group))
    reductions_[action.id] = action.group;
  if (action.kind == Kind::kBackwardInput) end_input(action);
  if (action.kind == Kind::kBackward || action.kind == Kind::kBackwardWeight) give_stash(action);
}

BytesByClass peak_bytes(const Program& program, const MemoryContext& context) {
  MemoryMeter meter(context);
  for (const Action& action : program.actions) {
    meter.begin(action);
    meter.end(action);
  }
  return meter.peak();
}

}  // namespace ptrain::program
