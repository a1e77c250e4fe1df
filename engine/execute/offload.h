#pragma once

#include <span>
#include <vector>

#include "core/program/action.h"
#include "core/program/offload_plan.h"
#include "engine/base/arena.h"
#include "engine/execute/copy_lane.h"
#include "engine/state/group_buffer.h"
#include "engine/state/offload_store.h"

namespace ptrain::execute {

// The offloaded optimizer state of one rank: a store, and the ring of buffers that it passes
// through. While a program runs, FETCH and OFFLOAD move it; between programs, whoever saves or
// loads a checkpoint holds one group at a time. One thread, beside the lane's own.
class Offload {
 public:
  Offload(const program::OffloadPlan& plan, const state::StoreMaker& make_store, Arena& arena);

  // FETCH and OFFLOAD; the group's state has its place from the one to the other.
  void fetch(const program::Action& action, state::GroupBuffer& group);
  void offload(const program::Action& action, state::GroupBuffer& group);
  CopyLane& lane() { return lane_; }

  // The state of `group` in memory, until another group's is held or it is released. `changes`:
  // what is written there is kept.
  std::byte* hold(int group, bool changes);
  void release();

 private:
  const program::OffloadPlan::Place& place(int group) const {
    return plan_.groups[static_cast<std::size_t>(group)];
  }
  std::span<std::byte> buffer(int group) const;

  program::OffloadPlan plan_;
  std::unique_ptr<state::OffloadStore> store_;
  std::vector<Buffer> ring_;
  int held_ = -1;  // group
  bool held_changes_ = false;
  CopyLane lane_;  // last: its thread ends before what it copies between
};

}  // namespace ptrain::execute
