#include "engine/checkpoint/share_out.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace ptrain::checkpoint {

namespace {

constexpr int kMostThreads = 4;  // more wait for memory, or for the disk

}  // namespace

int threads_of_rank(const comm::Communicator& world) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(cores / world.size(), 1, kMostThreads);
}

void share_out(std::size_t count, int threads, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::pair<std::size_t, std::exception_ptr> first{count, nullptr};
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) try {
        work(i);
      } catch (...) {
        next = count;
        const std::lock_guard lock(mutex);
        if (i < first.first) first = {i, std::current_exception()};
      }
  };
  {
    std::vector<std::jthread> others;
    const auto wanted = std::min(static_cast<std::size_t>(threads), count);
    for (std::size_t i = 1; i < wanted; ++i) others.emplace_back(run);
    run();
  }
  if (first.second) std::rethrow_exception(first.second);
}

}  // namespace ptrain::checkpoint
