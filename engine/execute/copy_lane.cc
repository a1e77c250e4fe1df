#include "engine/execute/copy_lane.h"

#include <signal.h>

#include <algorithm>
#include <utility>

namespace ptrain::execute {

CopyLane::CopyLane() {
  // Signals are for the thread that trains.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { serve(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

CopyLane::~CopyLane() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  pushed_.notify_one();
  thread_.join();
}

void CopyLane::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    pushed_.wait(lock, [&] { return ends_ || !entries_.empty(); });
    if (ends_) return;
    const Entry& entry = entries_.front();  // stays where it is while others are pushed
    std::exception_ptr error = error_;
    lock.unlock();
    try {
      if (error == nullptr) make(entry);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    error_ = error;
    entries_.pop_front();
    done_.notify_all();
  }
}

void CopyLane::make(const Entry& entry) {
  if (watcher_) watcher_(entry.action, true);
  entry.copy();
  if (watcher_) watcher_(entry.action, false);
}

void CopyLane::push(int action, std::function<void()> copy) {
  {
    const std::lock_guard lock(mutex_);
    entries_.push_back({action, std::move(copy)});
  }
  pushed_.notify_one();
}

bool CopyLane::has(int action) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Entry& entry) { return entry.action == action; });
}

void CopyLane::drop() {
  std::unique_lock lock(mutex_);
  if (entries_.size() > 1) entries_.erase(entries_.begin() + 1, entries_.end());
  done_.wait(lock, [&] { return entries_.empty(); });
}

template <class Done>
void CopyLane::wait_until(Done done) {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return error_ != nullptr || done(); });
  if (error_ != nullptr) std::rethrow_exception(error_);
}

void CopyLane::wait(int action) {
  wait_until([&] { return !has(action); });
}

void CopyLane::wait_all() {
  wait_until([&] { return entries_.empty(); });
}

}  // namespace ptrain::execute
