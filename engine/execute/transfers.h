#pragma once

#include <functional>
#include <map>

#include "core/program/action.h"
#include "engine/base/arena.h"
#include "engine/base/tensor.h"
#include "engine/comm/communicator.h"
#include "engine/execute/lane_queue.h"

namespace ptrain::execute {

// The streams that pass between the ranks of a pipeline. All of a direction go through one
// communicator, so that two ranks that are neighbours both ways do not mix them up; there they
// arrive in the order in which they were sent. Nothing here waits for an earlier one.
class Transfers {
 public:
  // Null where the layout has no pipeline.
  Transfers(comm::Communicator* forward, comm::Communicator* backward)
      : forward_(forward), backward_(backward) {}

  void watch(LaneQueue::Watcher watcher) { watcher_ = std::move(watcher); }
  // SEND: the stream is given back when somebody waits for the action, or at the end.
  void send(const program::Action& action, Buffer stream, std::int64_t bytes);
  // RECV: into a stream that stays alive until somebody has waited for the action.
  void receive(const program::Action& action, void* stream, std::int64_t bytes);
  void poll();
  // Returns at once for actions that are not here; calls `meanwhile` until then.
  void wait(int action, const std::function<void()>& meanwhile);
  void wait_all();

 private:
  struct Entry {
    Buffer stream;  // of a SEND
    comm::WorkHandle work;
    bool ended = false;
  };
  comm::Communicator& ranks_of(const program::Action& action) const;
  void begin(int action, Buffer stream, comm::WorkHandle work);
  void end(int action, Entry& entry);

  comm::Communicator* forward_;
  comm::Communicator* backward_;
  LaneQueue::Watcher watcher_;
  std::map<int, Entry> entries_;  // by action
};

}  // namespace ptrain::execute
