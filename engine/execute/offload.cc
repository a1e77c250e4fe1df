#include "engine/execute/offload.h"

#include "core/base/divide.h"
#include "engine/base/device.h"
#include "engine/base/engine_error.h"
#include "engine/base/planted.h"

namespace ptrain::execute {

Offload::Offload(const program::OffloadPlan& plan, const state::StoreMaker& make_store,
                 Arena& arena)
    : plan_(plan), store_(make_store(plan.store_bytes)) {
  for (const std::int64_t bytes : plan.buffers)
    ring_.emplace_back(arena, program::MemoryClass::kOptimizer, bytes);
}

std::span<std::byte> Offload::buffer(int group) const {
  const auto& [index, offset, bytes] = place(group);
  const auto begin =
      reinterpret_cast<std::uintptr_t>(ring_[static_cast<std::size_t>(index)].data());
  const auto page = round_up(static_cast<std::int64_t>(begin), program::kPageBytes);
  return {reinterpret_cast<std::byte*>(page), static_cast<std::size_t>(bytes)};
}

void Offload::fetch(const program::Action& action, state::GroupBuffer& group) {
  const std::span<std::byte> to = buffer(action.group);
  const std::int64_t from = place(action.group).offset;
  PT_CHECK(!held_changes_);
  held_ = -1;  // the ring is the program's now
  group.place_state(to.data());
  lane_.push(action.id, [this, from, to] { store_->read(from, to); });
}

// The copy is in no order with the kernels of the update.
void Offload::offload(const program::Action& action, state::GroupBuffer& group) {
  device::synchronize();
  const std::span<std::byte> from = buffer(action.group);
  const std::int64_t to = place(action.group).offset;
  group.place_state(nullptr);
  lane_.push(action.id, [this, from, to] {
    if (!planted(Bug::kOffloadLost)) store_->write(to, from);
  });
}

std::byte* Offload::hold(int group, bool changes) {
  if (held_ != group) {
    release();
    store_->read(place(group).offset, buffer(group));
    held_ = group;
  }
  held_changes_ = held_changes_ || changes;
  return buffer(group).data();
}

void Offload::release() {
  if (held_ >= 0 && held_changes_) store_->write(place(held_).offset, buffer(held_));
  held_ = -1;
  held_changes_ = false;
}

}  // namespace ptrain::execute
