#include "engine/comm/window.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <numeric>

#include "engine/base/engine_error.h"
#include "engine/comm/reduce.h"

namespace ptrain::comm {
namespace {

constexpr std::int64_t kCacheLine = 64;  // each epoch has one to itself

}  // namespace

std::int64_t WindowShape::segments_begin() const {
  return kCacheLine * num_slots * static_cast<std::int64_t>(bytes.size());
}

std::int64_t WindowShape::total_bytes() const {
  return std::accumulate(bytes.begin(), bytes.end(), segments_begin());
}

Window::Window(Communicator& owner, std::unique_ptr<SharedMemory> memory, WindowShape shape,
               Waiting waiting)
    : owner_(owner),
      memory_(std::move(memory)),
      shape_(std::move(shape)),
      waiting_(std::move(waiting)),
      all_(shape_.bytes.size()) {
  std::iota(all_.begin(), all_.end(), 0);
  std::byte* next = memory_->data() + shape_.segments_begin();
  for (const std::int64_t bytes : shape_.bytes) {
    segments_.push_back(next);
    next += bytes;
  }
}

Window::~Window() {
  if (!closed_ && std::uncaught_exceptions() == 0 && !waiting_.transport.failed_rank())
    fmt::print(stderr, "a window of communicator {} was never closed: a bug in ptrain\n",
               waiting_.label.communicator);
}

std::atomic_ref<std::uint64_t> Window::counter(int rank, int slot) const {
  PT_CHECK(slot >= 0 && slot < shape_.num_slots);
  const std::int64_t index = std::int64_t{rank} * shape_.num_slots + slot;
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(memory_->data() + kCacheLine * index));
}

void Window::publish(int slot, std::uint64_t epoch) {
  counter(shape_.rank, slot).store(epoch, std::memory_order_release);
}

std::uint64_t Window::epoch(int rank, int slot) const {
  return counter(rank, slot).load(std::memory_order_acquire);
}

std::vector<int> Window::late(const std::vector<int>& ranks, int slot, std::uint64_t epoch) const {
  std::vector<int> late;
  for (const int rank : ranks)
    if (this->epoch(rank, slot) < epoch) late.push_back(rank);
  return late;
}

void Window::wait(int slot, std::uint64_t epoch) { wait(all_, slot, epoch); }

void Window::wait(const std::vector<int>& ranks, int slot, std::uint64_t epoch) {
  Label label = waiting_.label;
  label.verb = "window epoch";
  label.sequence = epoch;
  waiting_.state->set_mark(label.communicator, label.verb, epoch);
  const Transport& transport = waiting_.transport;
  const auto all_there = [&] { return late(ranks, slot, epoch).empty(); };
  const auto over = [&] { return all_there() || transport.failed_rank().has_value(); };
  const bool in_time = waiting_.state->wait(label.mark(), over, transport.time_limit_s());
  const std::vector<int> missing = late(ranks, slot, epoch);
  if (missing.empty()) return;
  if (!in_time) throw_timed_out(label, missing, transport.time_limit_s());
  throw_peer_failed(label, missing, *transport.failed_rank());
}

class Window::Expectation final : public Work {
 public:
  Expectation(Window& window, std::vector<int> ranks, int slot, std::uint64_t epoch)
      : window_(window), ranks_(std::move(ranks)), slot_(slot), epoch_(epoch) {}
  bool done() override {
    if (window_.late(ranks_, slot_, epoch_).empty()) return true;
    window_.waiting_.state->advance_all();
    return false;
  }
  void wait() override { window_.wait(ranks_, slot_, epoch_); }

 private:
  Window& window_;
  std::vector<int> ranks_;
  int slot_;
  std::uint64_t epoch_;
};

WorkHandle Window::expect(std::vector<int> ranks, int slot, std::uint64_t epoch) {
  return std::make_unique<Expectation>(*this, std::move(ranks), slot, epoch);
}

void Window::close() {
  PT_CHECK(!closed_);
  owner_.barrier();  // nobody reads this rank's segment any more
  memory_->close();
  closed_ = true;
}

void reduce_from_window(const Window& window, std::span<const int> ranks, const WindowRun& run,
                        std::byte* output) {
  std::vector<const std::byte*> inputs;
  for (const int rank : ranks) {
    PT_CHECK(run.offset >= 0 && run.offset + run.count * size_of(run.dtype) <= window.bytes(rank));
    inputs.push_back(window.segment(rank) + run.offset);
  }
  reduce_in_order(run.dtype, ReduceOp::kSum, inputs, run.count, output);
}

}  // namespace ptrain::comm
