#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "engine/comm/communicator.h"

namespace ptrain::execute {

// The communication of one lane: actions run in order, one at a time, and go on whenever poll is
// called between two pieces of computing. An action's `finish` (giving memory back, adding up) runs
// when somebody waits for it, never earlier, so that memory does not depend on timing.
class LaneQueue {
 public:
  // Starts one collective, when those before it are done; null where it leaves nothing to wait for.
  using Stage = std::function<comm::WorkHandle()>;

  // Told when an action's first collective is started and when its last is done.
  using Watcher = std::function<void(int action, bool begins)>;

  void watch(Watcher watcher) { watcher_ = std::move(watcher); }
  void push(int action, std::vector<Stage> stages, std::function<void()> finish);
  void poll();
  // Returns at once for actions that are not in this queue or were waited for before.
  void wait(int action);
  void wait_all();

 private:
  struct Entry {
    int action = 0;
    std::vector<Stage> stages;
    std::size_t next_stage = 0;
    comm::WorkHandle work;
    std::function<void()> finish;
    bool begun = false;
    bool ended = false;
    bool communicated() const { return next_stage == stages.size() && work == nullptr; }
  };
  bool advance(Entry& entry, bool block);

  Watcher watcher_;
  std::deque<Entry> entries_;
};

}  // namespace ptrain::execute
