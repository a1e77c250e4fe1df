// GPU ranks over NCCL. Every verb is queued on the default stream, among the kernels: all ranks
// queue the same verbs in the same order, which their programs give, so none waits for one that its
// peer has queued behind another.
#include "engine/comm/nccl.h"

#include <cuda_runtime.h>
#include <fmt/format.h>
#include <nccl.h>

#include <exception>

#include "engine/base/cuda_check.h"
#include "engine/base/engine_error.h"
#include "engine/comm/phased_work.h"
#include "engine/comm/window.h"

namespace ptrain::comm {
namespace {

void check(ncclResult_t status, std::string_view what) {
  if (status == ncclSuccess) return;
  throw EngineError(ExitCode::kRankError,
                    fmt::format("NCCL: {} failed: {}", what, ncclGetErrorString(status)),
                    "set NCCL_DEBUG=INFO to learn more");
}

constexpr cudaStream_t kStream = nullptr;  // the kernels' own
constexpr double kTimeLimit_s = 1800;

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return ncclFloat32;
    case DType::kFloat64:
      return ncclFloat64;
    case DType::kBFloat16:
      return ncclBfloat16;
    case DType::kInt32:
      return ncclInt32;
    case DType::kInt64:
      return ncclInt64;
    case DType::kUInt8:
      return ncclUint8;
  }
  throw_bug(__FILE__, __LINE__, "a dtype of the list");
}

std::size_t as_size(std::int64_t value) { return static_cast<std::size_t>(value); }

// Queued: those that come later on the stream find the result.
class QueuedWork final : public Work {
 public:
  bool done() override { return true; }
  void wait() override {}
};

bool is_on_gpu(const void* data) {
  cudaPointerAttributes attributes{};
  device::check(cudaPointerGetAttributes(&attributes, data), "cudaPointerGetAttributes");
  return attributes.type == cudaMemoryTypeManaged || attributes.type == cudaMemoryTypeDevice;
}

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(std::unique_ptr<Communicator> peers, std::shared_ptr<RankState> state)
      : peers_(std::move(peers)), state_(std::move(state)) {
    ncclUniqueId id{};
    if (peers_->rank() == 0) check(ncclGetUniqueId(&id), "ncclGetUniqueId");
    peers_->broadcast(reinterpret_cast<std::byte*>(&id), sizeof id, 0)->wait();
    check(ncclCommInitRank(&comm_, peers_->size(), id, peers_->rank()), "ncclCommInitRank");
  }

  ~NcclCommunicator() override {
    if (comm_ != nullptr && std::uncaught_exceptions() == 0)
      fmt::print(stderr, "communicator {} was never closed: a bug in ptrain\n", name());
  }

  int rank() const override { return peers_->rank(); }
  int size() const override { return peers_->size(); }
  const std::string& name() const override { return peers_->name(); }
  CollectiveMark last_collective() const override { return state_->mark(); }
  double seconds_waited() const override { return state_->seconds_waited(); }

  WorkHandle all_gather_v(std::byte* buffer, DType dtype, Counts offsets, Counts counts) override {
    return grouped("all_gather_v", [&] {
      std::byte* mine = buffer + offsets[as_size(rank())] * size_of(dtype);
      if (are_even(offsets, counts)) {
        check(ncclAllGather(mine, buffer, as_size(counts[0]), type_of(dtype), comm_, kStream),
              "ncclAllGather");
        return;
      }
      for (int root = 0; root < size(); ++root) {
        std::byte* run = buffer + offsets[as_size(root)] * size_of(dtype);
        check(ncclBroadcast(run, run, as_size(counts[as_size(root)]), type_of(dtype), root, comm_,
                            kStream),
              "ncclBroadcast");
      }
    });
  }

  WorkHandle reduce_scatter_v(std::byte* buffer, DType dtype, Counts offsets,
                              Counts counts) override {
    return grouped("reduce_scatter_v", [&] {
      std::byte* mine = buffer + offsets[as_size(rank())] * size_of(dtype);
      if (are_even(offsets, counts)) {
        check(ncclReduceScatter(buffer, mine, as_size(counts[0]), type_of(dtype), ncclSum, comm_,
                                kStream),
              "ncclReduceScatter");
        return;
      }
      for (int root = 0; root < size(); ++root) {
        std::byte* run = buffer + offsets[as_size(root)] * size_of(dtype);
        check(ncclReduce(run, run, as_size(counts[as_size(root)]), type_of(dtype), ncclSum, root,
                         comm_, kStream),
              "ncclReduce");
      }
    });
  }

  // Host code's numbers, such as norms, travel as they would without GPUs.
  WorkHandle all_reduce(std::byte* buffer, DType dtype, std::int64_t count, ReduceOp op) override {
    if (!is_on_gpu(buffer)) return peers_->all_reduce(buffer, dtype, count, op);
    return grouped("all_reduce", [&] {
      check(ncclAllReduce(buffer, buffer, as_size(count), type_of(dtype),
                          op == ReduceOp::kSum ? ncclSum : ncclMax, comm_, kStream),
            "ncclAllReduce");
    });
  }

  WorkHandle broadcast(std::byte* buffer, std::int64_t bytes, int root) override {
    return grouped("broadcast", [&] {
      check(ncclBroadcast(buffer, buffer, as_size(bytes), ncclUint8, root, comm_, kStream),
            "ncclBroadcast");
    });
  }

  // Host code's numbers, such as counts, which every rank has some of, travel without NCCL.
  WorkHandle all_to_all_v(std::span<const Piece> sends, std::span<const Piece> receives) override {
    if (!sends.empty() && !is_on_gpu(sends.front().bytes.data()))
      return peers_->all_to_all_v(sends, receives);
    return grouped("all_to_all_v", [&] { queue_pieces(sends, receives); });
  }

  WorkHandle exchange(std::span<const Piece> sends, std::span<const Piece> receives) override {
    return grouped("exchange", [&] { queue_pieces(sends, receives); });
  }

  void barrier() override {
    const Label label{name(), "barrier", ++num_collectives_, {}};
    state_->set_mark(name(), label.verb, label.sequence);
    if (!state_->wait(
            label.mark(), [this] { return is_idle(); }, kTimeLimit_s))
      throw_timed_out(label, {}, kTimeLimit_s);
    peers_->barrier();
  }

  std::unique_ptr<Communicator> split(int color, int key, const std::string& name) override {
    auto group = peers_->split(color, key, name);
    if (group == nullptr) return nullptr;
    return std::make_unique<NcclCommunicator>(std::move(group), state_);
  }

  std::unique_ptr<Window> make_window(std::int64_t, int) override { return nullptr; }

  void close() override {
    barrier();
    check(ncclCommDestroy(comm_), "ncclCommDestroy");
    comm_ = nullptr;
    peers_->close();
  }

  void abort(int code) override {
    ncclCommAbort(comm_);  // whether it fails does not matter any more
    comm_ = nullptr;
    peers_->abort(code);
  }

 private:
  // NCCL's own gather and reduce-scatter know only equal runs, one right after the other.
  static bool are_even(Counts offsets, Counts counts) {
    for (std::size_t r = 0; r < counts.size(); ++r)
      if (counts[r] != counts[0] || offsets[r] != static_cast<std::int64_t>(r) * counts[0])
        return false;
    return true;
  }

  void queue_pieces(std::span<const Piece> sends, std::span<const Piece> receives) {
    for (const Piece& piece : sends)
      send(piece.bytes.data(), static_cast<std::int64_t>(piece.bytes.size()), piece.peer);
    for (const Piece& piece : receives)
      receive(piece.bytes.data(), static_cast<std::int64_t>(piece.bytes.size()), piece.peer);
  }

  void send(const std::byte* data, std::int64_t bytes, int peer) {
    check(ncclSend(data, as_size(bytes), ncclUint8, peer, comm_, kStream), "ncclSend");
  }
  void receive(std::byte* data, std::int64_t bytes, int peer) {
    check(ncclRecv(data, as_size(bytes), ncclUint8, peer, comm_, kStream), "ncclRecv");
  }

  template <class Calls>
  WorkHandle grouped(std::string_view verb, Calls calls) {
    check(ncclGroupStart(), "ncclGroupStart");
    calls();
    check(ncclGroupEnd(), verb);
    state_->set_mark(name(), verb, ++num_collectives_);
    return std::make_unique<QueuedWork>();
  }

  // Whether all that was queued has ended.
  bool is_idle() {
    ncclResult_t later = ncclSuccess;
    check(ncclCommGetAsyncError(comm_, &later), "ncclCommGetAsyncError");
    check(later, "a collective");
    const cudaError_t status = cudaStreamQuery(kStream);
    if (status == cudaErrorNotReady) return false;
    device::check(status, "a kernel");
    return true;
  }

  std::unique_ptr<Communicator> peers_;
  std::shared_ptr<RankState> state_;
  ncclComm_t comm_ = nullptr;
  std::uint64_t num_collectives_ = 0;
};

}  // namespace

std::unique_ptr<Communicator> for_tensors(std::unique_ptr<Communicator> peers) {
  if (peers == nullptr) return nullptr;
  return std::make_unique<NcclCommunicator>(std::move(peers), std::make_shared<RankState>());
}

}  // namespace ptrain::comm
