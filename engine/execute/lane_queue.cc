#include "engine/execute/lane_queue.h"

#include <algorithm>
#include <utility>

namespace ptrain::execute {

void LaneQueue::push(int action, std::vector<Stage> stages, std::function<void()> finish) {
  Entry entry;
  entry.action = action;
  entry.stages = std::move(stages);
  entry.finish = std::move(finish);
  entries_.push_back(std::move(entry));
  poll();
}

// Brings an entry as far as it goes; true when all its communication is done.
bool LaneQueue::advance(Entry& entry, bool block) {
  if (!std::exchange(entry.begun, true) && watcher_) watcher_(entry.action, true);
  while (!entry.communicated()) {
    if (entry.work == nullptr) entry.work = entry.stages[entry.next_stage++]();
    if (entry.work == nullptr) continue;
    if (block)
      entry.work->wait();
    else if (!entry.work->done())
      return false;
    entry.work = nullptr;
  }
  if (!std::exchange(entry.ended, true) && watcher_) watcher_(entry.action, false);
  return true;
}

void LaneQueue::poll() {
  for (Entry& entry : entries_)
    if (!advance(entry, false)) return;
}

void LaneQueue::wait(int action) {
  const auto wanted = std::find_if(entries_.begin(), entries_.end(),
                                   [&](const Entry& entry) { return entry.action == action; });
  if (wanted == entries_.end()) return;
  for (auto entry = entries_.begin(); entry != std::next(wanted); ++entry) advance(*entry, true);
  const auto finish = std::move(wanted->finish);
  entries_.erase(wanted);
  if (finish) finish();
}

void LaneQueue::wait_all() {
  while (!entries_.empty()) wait(entries_.front().action);
}

}  // namespace ptrain::execute
