#include "engine/comm/window.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <numeric>

#include "engine/base/engine_error.h"
#include "engine/comm/reduce.h"

namespace ptrain::comm {
namespace {

constexpr std::int64_t kCacheLine = 64;   // each epoch has one to itself

}  // namespace

std::int64_t WindowShape::segments_begin() const {
  return kCacheLine * num_slots * static_cast<std::int64_t>(bytes.size());
}

std::int64_t WindowShape::total_bytes() const {
  return std::accumulate(bytes.begin(), bytes.end(), segments_begin());
}

Window::Window(Communicator& owner, std::unique_ptr<SharedMemory> memory, WindowShape shape,
               Waiting waiting)
    : owner_(owner), memory_(std::move(memory)), shape_(std::move(shape)),
      waiting_(std::move(waiting)) {
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

bool Window::reached(int slot, std::uint64_t epoch) const {
  for (int rank = 0; rank < size(); ++rank)
    if (this->epoch(rank, slot) < epoch) return false;
  return true;
}

void Window::wait(int slot, std::uint64_t epoch) {
  Label label = waiting_.label;
  label.verb = "window epoch";
  label.sequence = epoch;
  waiting_.state->set_mark(label.communicator, label.verb, epoch);
  const Transport& transport = waiting_.transport;
  const auto over = [&] { return reached(slot, epoch) || transport.failed_rank().has_value(); };
  const bool in_time = waiting_.state->wait(over, transport.time_limit_s());
  if (reached(slot, epoch)) return;
  std::vector<int> missing;
  for (int rank = 0; rank < size(); ++rank)
    if (this->epoch(rank, slot) < epoch) missing.push_back(rank);
  if (!in_time) throw_timed_out(label, missing, transport.time_limit_s());
  throw_peer_failed(label, missing, *transport.failed_rank());
}

void Window::close() {
  PT_CHECK(!closed_);
  owner_.barrier();   // nobody reads this rank's segment any more
  memory_->close();
  closed_ = true;
}

void reduce_from_window(const Window& window, DType dtype, std::int64_t offset, std::int64_t count,
                        std::byte* output) {
  std::vector<const std::byte*> inputs;
  for (int rank = 0; rank < window.size(); ++rank) {
    PT_CHECK(offset >= 0 && offset + count * size_of(dtype) <= window.bytes(rank));
    inputs.push_back(window.segment(rank) + offset);
  }
  reduce_in_order(dtype, ReduceOp::kSum, inputs, count, output);
}

}  // namespace ptrain::comm
