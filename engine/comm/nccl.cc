// GPU ranks over NCCL. Every verb is queued on one stream, with an event behind it.
#include "engine/comm/nccl.h"

#include <cuda_runtime.h>
#include <fmt/format.h>
#include <nccl.h>

#include <exception>

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

void check(cudaError_t status, std::string_view what) {
  if (status == cudaSuccess) return;
  throw EngineError(ExitCode::kRankError,
                    fmt::format("CUDA: {} failed: {}", what, cudaGetErrorString(status)));
}

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

class NcclWork final : public Work {
 public:
  NcclWork(ncclComm_t comm, cudaStream_t stream, std::shared_ptr<RankState> state, Label label,
           double time_limit_s)
      : comm_(comm),
        state_(std::move(state)),
        label_(std::move(label)),
        time_limit_s_(time_limit_s) {
    check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate");
    check(cudaEventRecord(event_, stream), "cudaEventRecord");
  }
  ~NcclWork() override { cudaEventDestroy(event_); }
  NcclWork(const NcclWork&) = delete;
  NcclWork& operator=(const NcclWork&) = delete;

  bool done() override {
    ncclResult_t later = ncclSuccess;
    check(ncclCommGetAsyncError(comm_, &later), "ncclCommGetAsyncError");
    check(later, label_.verb);
    const cudaError_t status = cudaEventQuery(event_);
    if (status == cudaErrorNotReady) return false;
    check(status, label_.verb);
    return true;
  }

  void wait() override {
    if (!state_->wait(
            label_.mark(), [this] { return done(); }, time_limit_s_))
      throw_timed_out(label_, {}, time_limit_s_);
  }

 private:
  ncclComm_t comm_;
  std::shared_ptr<RankState> state_;
  Label label_;
  double time_limit_s_;
  cudaEvent_t event_ = nullptr;
};

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(std::unique_ptr<Communicator> peers, std::shared_ptr<RankState> state,
                   const NcclOptions& options)
      : peers_(std::move(peers)),
        state_(std::move(state)),
        options_(options),
        stream_(static_cast<cudaStream_t>(options.stream)) {
    check(cudaSetDevice(options_.device), "cudaSetDevice");
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
        check(ncclAllGather(mine, buffer, as_size(counts[0]), type_of(dtype), comm_, stream_),
              "ncclAllGather");
        return;
      }
      for (int root = 0; root < size(); ++root) {
        std::byte* run = buffer + offsets[as_size(root)] * size_of(dtype);
        check(ncclBroadcast(run, run, as_size(counts[as_size(root)]), type_of(dtype), root, comm_,
                            stream_),
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
                                stream_),
              "ncclReduceScatter");
        return;
      }
      for (int root = 0; root < size(); ++root) {
        std::byte* run = buffer + offsets[as_size(root)] * size_of(dtype);
        check(ncclReduce(run, run, as_size(counts[as_size(root)]), type_of(dtype), ncclSum, root,
                         comm_, stream_),
              "ncclReduce");
      }
    });
  }

  WorkHandle all_reduce(std::byte* buffer, DType dtype, std::int64_t count, ReduceOp op) override {
    return grouped("all_reduce", [&] {
      check(ncclAllReduce(buffer, buffer, as_size(count), type_of(dtype),
                          op == ReduceOp::kSum ? ncclSum : ncclMax, comm_, stream_),
            "ncclAllReduce");
    });
  }

  WorkHandle broadcast(std::byte* buffer, std::int64_t bytes, int root) override {
    return grouped("broadcast", [&] {
      check(ncclBroadcast(buffer, buffer, as_size(bytes), ncclUint8, root, comm_, stream_),
            "ncclBroadcast");
    });
  }

  WorkHandle exchange(std::span<const Piece> sends, std::span<const Piece> receives) override {
    return grouped("exchange", [&] {
      for (const Piece& piece : sends)
        send(piece.bytes.data(), static_cast<std::int64_t>(piece.bytes.size()), piece.peer);
      for (const Piece& piece : receives)
        receive(piece.bytes.data(), static_cast<std::int64_t>(piece.bytes.size()), piece.peer);
    });
  }

  void barrier() override {
    finish("barrier")->wait();
    peers_->barrier();
  }

  std::unique_ptr<Communicator> split(int color, int key, const std::string& name) override {
    auto group = peers_->split(color, key, name);
    if (group == nullptr) return nullptr;
    return std::make_unique<NcclCommunicator>(std::move(group), state_, options_);
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

  void send(const std::byte* data, std::int64_t bytes, int peer) {
    check(ncclSend(data, as_size(bytes), ncclUint8, peer, comm_, stream_), "ncclSend");
  }
  void receive(std::byte* data, std::int64_t bytes, int peer) {
    check(ncclRecv(data, as_size(bytes), ncclUint8, peer, comm_, stream_), "ncclRecv");
  }

  template <class Calls>
  WorkHandle grouped(std::string_view verb, Calls calls) {
    check(ncclGroupStart(), "ncclGroupStart");
    calls();
    check(ncclGroupEnd(), verb);
    return finish(verb);
  }

  // The Work of all that was queued so far.
  WorkHandle finish(std::string_view verb) {
    state_->set_mark(name(), verb, ++num_collectives_);
    return std::make_unique<NcclWork>(
        comm_, stream_, state_, Label{name(), verb, num_collectives_, {}}, options_.time_limit_s);
  }

  std::unique_ptr<Communicator> peers_;
  std::shared_ptr<RankState> state_;
  NcclOptions options_;
  cudaStream_t stream_;
  ncclComm_t comm_ = nullptr;
  std::uint64_t num_collectives_ = 0;
};

}  // namespace

std::unique_ptr<Communicator> make_nccl(std::unique_ptr<Communicator> peers,
                                        const NcclOptions& options) {
  return std::make_unique<NcclCommunicator>(std::move(peers), std::make_shared<RankState>(),
                                            options);
}

}  // namespace ptrain::comm
