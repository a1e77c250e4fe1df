#include "core/program/memory.h"

#include <algorithm>

#include "core/base/divide.h"
#include "core/mesh/state_plan.h"
#include "core/model/optimizer_state.h"
#include "core/program/gradient_places.h"
#include "core/program/offload_plan.h"

namespace ptrain::program {
namespace {

bool gradients_are_transient(const mesh::Layout& layout) {
  return layout.shard > 1 && layout.zero >= 2;
}

// Bytes that an element of the own shard takes, for good.
std::int64_t parameter_bytes(const MemoryContext& context) {
  const DType dtype = context.architecture.dtype, compute = context.architecture.compute_dtype;
  const bool gathers = context.layout.shard > 1 && !context.layout.shared_window;
  return size_of(dtype) + (compute == dtype || gathers ? 0 : size_of(compute));
}

// The validator refuses other words.
Keep keep_in(const Action& action, std::string_view attribute) {
  return keep_named(action.attribute(attribute)).value_or(Keep::kNone);
}

std::size_t index(MemoryClass memory_class) { return static_cast<std::size_t>(memory_class); }

}  // namespace

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
    const auto runs = buffer.runs(context.shard_rank);
    bytes += mesh::plan_state(context.architecture, runs).bytes;
    for (const mesh::ShardRun& run : runs) {
      const auto& parameter =
          context.architecture.parameters[static_cast<std::size_t>(run.parameter)];
      bytes += round_up((run.end - run.begin) * size_of(context.architecture.dtype), kAlignment);
      if (run.begin == 0 && model::counts_steps(parameter.rule)) bytes += kAlignment;
    }
  }
  return {bytes};
}

BytesByClass persistent_bytes(const MemoryContext& context) {
  std::int64_t shards = 0;
  std::int64_t whole = 0;
  std::int64_t state = 0;  // bytes
  for (const mesh::BufferPlan& buffer : context.buffers) {
    shards += buffer.shard_sizes[static_cast<std::size_t>(context.shard_rank)];
    whole += buffer.total();
    state += mesh::plan_state(context.architecture, buffer.runs(context.shard_rank)).bytes;
  }
  if (context.layout.offload == recipe::Offload::kOptimizer)
    state = plan_offload(context.architecture, context.buffers, context.shard_rank).ring_bytes();
  const bool transient = gradients_are_transient(context.layout);
  std::int64_t gradients = transient ? shards : whole;
  if (context.layout.shared_window) {
    const GradientPlaces places = place_gradients(context);
    gradients = places.elements + (transient ? shards : 0);
  }
  const std::int64_t element = size_of(context.architecture.dtype);
  BytesByClass bytes{};
  bytes[index(MemoryClass::kParameters)] = {shards * parameter_bytes(context)};
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

bool MemoryMeter::takes_gradients() const {
  return gradients_are_transient(context_.layout) && !context_.layout.shared_window;
}

std::int64_t MemoryMeter::whole_bytes(int group, DType dtype) const {
  return context_.buffers[static_cast<std::size_t>(group)].total() * size_of(dtype);
}

void MemoryMeter::take_stash(const Action& action, Keep before, Keep after) {
  const std::int64_t tokens = context_.layout.micro_batch * context_.sequence;
  const auto layer = static_cast<std::size_t>(action.layer_first);
  std::int64_t bytes = 0;
  for (const model::StashTensor& tensor : context_.architecture.layers[layer].stash) {
    if (keeps(before, tensor) || !keeps(after, tensor)) continue;
    bytes += tokens * tensor.elements_per_token * size_of(tensor.dtype);
  }
  stashes_[{action.layer_first, action.micro_batch}] += bytes;
  take(MemoryClass::kStash, bytes);
}

void MemoryMeter::begin(const Action& action) {
  for (int id : action.after) {
    const auto reduction = reductions_.find(id);
    if (reduction == reductions_.end()) continue;
    held_gradients_.erase(reduction->second);
    take(MemoryClass::kGradients, -whole_bytes(reduction->second, context_.architecture.dtype));
    reductions_.erase(reduction);
  }
  if (action.kind == Kind::kUnshard && gathers())
    take(MemoryClass::kGather, whole_bytes(action.group, context_.architecture.compute_dtype));
  if (action.kind == Kind::kRecompute) take_stash(action, keep_in(action, "from"), Keep::kAll);
  if (action.kind == Kind::kForward) take_stash(action, Keep::kNone, keep_in(action, "keep"));
  if (action.kind == Kind::kBackward && takes_gradients()) {
    const auto layer = static_cast<std::size_t>(action.layer_first);
    for (int group : context_.architecture.layers[layer].groups) {
      if (held_gradients_.insert(group).second)
        take(MemoryClass::kGradients, whole_bytes(group, context_.architecture.dtype));
    }
  }
}

void MemoryMeter::end(const Action& action) {
  if (action.kind == Kind::kReshard && gathers())
    take(MemoryClass::kGather, -whole_bytes(action.group, context_.architecture.compute_dtype));
  if (action.kind == Kind::kReduceGrad && takes_gradients()) {
    reductions_[action.id] = action.group;
  }
  if (action.kind == Kind::kBackward) {
    const auto stash = stashes_.find({action.layer_first, action.micro_batch});
    if (stash == stashes_.end()) return;
    take(MemoryClass::kStash, -stash->second);
    stashes_.erase(stash);
  }
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
