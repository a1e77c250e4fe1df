// The twin of engine/comm/nccl.cc under the emulated kernels: every verb waits its turn on the
// stream and ends before the next begins, on every rank, so ranks that call them in different
// orders hang here as they would there.
#include "engine/base/device.h"
#include "engine/comm/nccl.h"
#include "engine/comm/window.h"

namespace ptrain::comm {
namespace {

class Done final : public Work {
 public:
  bool done() override { return true; }
  void wait() override {}
};

class InOrder final : public Communicator {
 public:
  explicit InOrder(std::unique_ptr<Communicator> peers) : peers_(std::move(peers)) {}

  int rank() const override { return peers_->rank(); }
  int size() const override { return peers_->size(); }
  const std::string& name() const override { return peers_->name(); }
  CollectiveMark last_collective() const override { return peers_->last_collective(); }
  double seconds_waited() const override { return peers_->seconds_waited(); }

  WorkHandle all_gather_v(std::byte* buffer, DType dtype, Counts offsets, Counts counts) override {
    return at_once([&] { return peers_->all_gather_v(buffer, dtype, offsets, counts); });
  }
  WorkHandle reduce_scatter_v(std::byte* buffer, DType dtype, Counts offsets,
                              Counts counts) override {
    return at_once([&] { return peers_->reduce_scatter_v(buffer, dtype, offsets, counts); });
  }
  WorkHandle all_reduce(std::byte* buffer, DType dtype, std::int64_t count, ReduceOp op) override {
    return at_once([&] { return peers_->all_reduce(buffer, dtype, count, op); });
  }
  WorkHandle broadcast(std::byte* buffer, std::int64_t bytes, int root) override {
    return at_once([&] { return peers_->broadcast(buffer, bytes, root); });
  }
  WorkHandle all_to_all_v(std::span<const Piece> sends, std::span<const Piece> receives) override {
    return at_once([&] { return peers_->all_to_all_v(sends, receives); });
  }
  WorkHandle exchange(std::span<const Piece> sends, std::span<const Piece> receives) override {
    return at_once([&] { return peers_->exchange(sends, receives); });
  }
  void barrier() override {
    device::synchronize();
    peers_->barrier();
  }
  std::unique_ptr<Communicator> split(int color, int key, const std::string& name) override {
    return for_tensors(peers_->split(color, key, name));
  }
  std::unique_ptr<Window> make_window(std::int64_t, int) override { return nullptr; }
  void close() override {
    device::synchronize();
    peers_->close();
  }
  void abort(int code) override { peers_->abort(code); }

 private:
  template <class Start>
  WorkHandle at_once(const Start& start) {
    device::synchronize();
    start()->wait();
    return std::make_unique<Done>();
  }

  std::unique_ptr<Communicator> peers_;
};

}  // namespace

std::unique_ptr<Communicator> for_tensors(std::unique_ptr<Communicator> peers) {
  if (peers == nullptr) return nullptr;
  return std::make_unique<InOrder>(std::move(peers));
}

}  // namespace ptrain::comm
