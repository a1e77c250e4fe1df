#include "engine/comm/rank_state.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace ptrain::comm {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr int kYields = 500;  // about as long as a peer on the same core needs to answer
constexpr std::chrono::microseconds kShortestSleep{20};
// MPI without a copy made by the kernel moves data only when asked: long sleeps would slow it.
constexpr std::chrono::microseconds kLongestSleep{50};
// A pause that takes longer is no wait for peers, but one for a core that something else has.
constexpr std::chrono::microseconds kLongestPause{500};

// Sets a pointer that another thread reads, until it is gone.
class Pointing {
 public:
  Pointing(std::mutex& mutex, const CollectiveMark*& pointer, const CollectiveMark& to)
      : mutex_(mutex), pointer_(pointer) {
    set(&to);
  }
  ~Pointing() { set(nullptr); }
  Pointing(const Pointing&) = delete;
  Pointing& operator=(const Pointing&) = delete;

 private:
  void set(const CollectiveMark* to) {
    const std::lock_guard lock(mutex_);
    pointer_ = to;
  }
  std::mutex& mutex_;
  const CollectiveMark*& pointer_;
};

// Between two looks: shorter at first.
class Pauses {
 public:
  // Takes one; the seconds of it in which this thread was given no core.
  Seconds take() {
    const auto begin = Clock::now();
    if (num_taken_++ < kYields) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(sleep_);
      sleep_ = std::min(sleep_ * 5 / 4, kLongestSleep);
    }
    const Seconds took = Clock::now() - begin;
    return took < kLongestPause ? Seconds(0) : took;
  }

 private:
  int num_taken_ = 0;
  std::chrono::microseconds sleep_ = kShortestSleep;
};

}  // namespace

void RankState::advance_all() {
  for (std::size_t i = 0; i < pending_.size();) {
    if (pending_[i]->advance())
      pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i));
    else
      ++i;
  }
}

bool RankState::wait(const CollectiveMark& what, const std::function<bool()>& finished,
                     double limit_s) {
  advance_all();
  if (finished()) return true;
  const Pointing pointing(mutex_, waited_, what);
  const auto begin = Clock::now();
  Pauses pauses;
  Seconds elapsed{0}, without_core{0};
  bool done = false;
  while (!done && elapsed < Seconds(limit_s)) {
    without_core += pauses.take();
    advance_all();
    done = finished();
    elapsed = Clock::now() - begin;
  }
  const Seconds waited = elapsed - without_core;
  seconds_waited_.store(seconds_waited() + waited.count(), std::memory_order_relaxed);
  return done;
}

void RankState::set_mark(const std::string& communicator, std::string_view verb,
                         std::uint64_t sequence) {
  const std::lock_guard lock(mutex_);
  mark_.communicator = communicator;
  mark_.verb = verb;
  mark_.sequence = sequence;
}

CollectiveMark RankState::mark() const {
  const std::lock_guard lock(mutex_);
  if (waited_ == nullptr) return mark_;
  CollectiveMark mark = *waited_;
  mark.waiting = true;
  return mark;
}

}  // namespace ptrain::comm
