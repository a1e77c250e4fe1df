#include "tests/support/ranks.h"

#include <fmt/format.h>

#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

namespace ptrain::tests {
namespace {

class FirstFailure {
 public:
  void set(int rank, const char* what) {
    const std::lock_guard lock(mutex_);
    if (!text_) text_ = fmt::format("rank {}: {}", rank, what);
  }
  void rethrow() const {
    if (text_) throw std::runtime_error(*text_);
  }

 private:
  std::mutex mutex_;
  std::optional<std::string> text_;
};

}  // namespace

void run_ranks(int size, const std::function<void(comm::Communicator&)>& body) {
  const auto ranks = comm::make_threads(size);
  FirstFailure failure;
  const auto play = [&](comm::Communicator& communicator) {
    try {
      body(communicator);
      communicator.close();
    } catch (const std::exception& error) {
      failure.set(communicator.rank(), error.what());
      communicator.abort(1);
    }
  };
  std::vector<std::jthread> threads;
  for (const auto& communicator : ranks) threads.emplace_back(play, std::ref(*communicator));
  threads.clear();  // joins
  failure.rethrow();
}

}  // namespace ptrain::tests
