#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace ptrain::execute {

// The copies of both copy lanes, one after the other in the order of the program, on a thread of
// its own: there is one disk, and a copy never waits for a later one. The thread mostly sleeps in
// the kernel, so it takes little of the core that computes.
class CopyLane {
 public:
  // Told by the thread when a copy begins and ends.
  using Watcher = std::function<void(int action, bool begins)>;

  CopyLane();
  ~CopyLane();  // after the copy under way; later ones are dropped
  CopyLane(const CopyLane&) = delete;
  CopyLane& operator=(const CopyLane&) = delete;

  // While nothing is under way.
  void watch(Watcher watcher) { watcher_ = std::move(watcher); }
  void push(int action, std::function<void()> copy);
  // Returns at once for actions that are not in this lane. Both throw what a copy threw; copies
  // after that one are not made.
  void wait(int action);
  void wait_all();
  // Drops what is not begun, and returns after the copy under way.
  void drop();

 private:
  struct Entry {
    int action = 0;
    std::function<void()> copy;
  };
  void serve();
  void make(const Entry& entry);
  bool has(int action) const;
  template <class Done>
  void wait_until(Done done);

  Watcher watcher_;
  std::mutex mutex_;  // of all below
  std::condition_variable pushed_, done_;
  std::deque<Entry> entries_;  // the first is under way, or next
  std::exception_ptr error_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace ptrain::execute
