// Ranks that are MPI processes. Only non-blocking messages are used; what blocks in MPI (split,
// free, finalize) comes after a collective of ours that has shown every rank to be there.
#define OMPI_SKIP_MPICXX
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <memory>
#include <set>

#include "engine/base/engine_error.h"
#include "engine/comm/bootstrap_pmix.h"
#include "engine/comm/transport.h"

namespace ptrain::comm {
namespace {

constexpr const char* kPeerHint = "a rank or a link may be gone: see the logs of the other ranks";

void check(int status, std::string_view what, const char* hint = kPeerHint) {
  if (status == MPI_SUCCESS) return;
  std::string text(MPI_MAX_ERROR_STRING, '\0');
  int length = 0;
  MPI_Error_string(status, text.data(), &length);
  text.resize(static_cast<std::size_t>(length));
  throw EngineError(ExitCode::kRankError, fmt::format("MPI: {} failed: {}", what, text), hint);
}

class MpiTransfer final : public Transfer {
 public:
  void add(MPI_Request request, int peer, int receive_bytes = -1) {
    requests_.push_back(request);
    parts_.push_back({peer, receive_bytes});
  }

  ~MpiTransfer() override {  // unfinished only when this rank ends in an error
    for (MPI_Request& request : requests_)
      if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  }

  bool done() override {
    if (requests_.empty()) return true;
    statuses_.resize(requests_.size());
    int flag = 0;
    const int status =
        MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &flag, statuses_.data());
    if (status == MPI_ERR_IN_STATUS)
      for (const MPI_Status& one : statuses_)
        if (one.MPI_ERROR != MPI_ERR_PENDING) check(one.MPI_ERROR, "a message");
    check(status, "MPI_Testall");
    if (flag == 0) return false;
    for (std::size_t i = 0; i < parts_.size(); ++i) check_length(statuses_[i], parts_[i]);
    requests_.clear();
    return true;
  }

  std::vector<int> missing() override {
    std::set<int> peers;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      int flag = 0;
      check(MPI_Request_get_status(requests_[i], &flag, MPI_STATUS_IGNORE), "asking for a message");
      if (flag == 0) peers.insert(parts_[i].peer);
    }
    return {peers.begin(), peers.end()};
  }

 private:
  struct Part {
    int peer;
    int receive_bytes;
  };  // -1: a send

  static void check_length(const MPI_Status& status, const Part& part) {
    if (part.receive_bytes < 0) return;
    int bytes = 0;
    check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
    PT_CHECK(bytes == part.receive_bytes);
  }

  std::vector<MPI_Request> requests_;
  std::vector<Part> parts_;
  std::vector<MPI_Status> statuses_;
};

class MpiMemory final : public SharedMemory {
 public:
  MpiMemory(MPI_Comm comm, std::int64_t bytes) {
    int rank = 0;
    check(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
    // All of it in rank 0's part, so that the layout is ours; with room to align it.
    const MPI_Aint mine = rank == 0 ? bytes + kAlignment : 0;
    void* unused = nullptr;
    check(MPI_Win_allocate_shared(mine, 1, MPI_INFO_NULL, comm, &unused, &win_),
          fmt::format("{} bytes of shared memory", bytes),
          "make /dev/shm larger (containers often have 64 MiB), or use fewer ranks a node");
    MPI_Aint size = 0;
    int unit = 0;
    void* begin = nullptr;
    check(MPI_Win_shared_query(win_, 0, &size, &unit, &begin), "MPI_Win_shared_query");
    std::size_t room = static_cast<std::size_t>(size);
    data_ = static_cast<std::byte*>(
        std::align(kAlignment, static_cast<std::size_t>(bytes), begin, room));
    PT_CHECK(data_ != nullptr);
  }
  std::byte* data() override { return data_; }
  void close() override { check(MPI_Win_free(&win_), "MPI_Win_free"); }

 private:
  static constexpr std::int64_t kAlignment = 64;
  MPI_Win win_ = MPI_WIN_NULL;
  std::byte* data_ = nullptr;
};

class MpiTransport final : public Transport {
 public:
  MpiTransport(MPI_Comm comm, const MpiOptions& options) : comm_(comm), options_(options) {
    check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  double time_limit_s() const override { return options_.time_limit_s; }
  std::optional<int> failed_rank() const override { return std::nullopt; }  // killed too

  std::unique_ptr<Transfer> start(std::span<const Piece> sends, std::span<const Piece> receives,
                                  int tag) override {
    auto transfer = std::make_unique<MpiTransfer>();
    const auto receive = [&](int peer, void* data, int bytes) {
      MPI_Request request = MPI_REQUEST_NULL;
      check(MPI_Irecv(data, bytes, MPI_BYTE, peer, tag, comm_, &request), "MPI_Irecv");
      transfer->add(request, peer, bytes);
    };
    const auto send = [&](int peer, const void* data, int bytes) {
      MPI_Request request = MPI_REQUEST_NULL;
      check(MPI_Isend(data, bytes, MPI_BYTE, peer, tag, comm_, &request), "MPI_Isend");
      transfer->add(request, peer);
    };
    for (const Piece& piece : receives) for_each_message(piece, receive);
    for (const Piece& piece : sends) for_each_message(piece, send);
    return transfer;
  }

  std::unique_ptr<SharedMemory> share(std::int64_t bytes) override {
    MPI_Comm node = MPI_COMM_NULL;
    check(MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node),
          "MPI_Comm_split_type");
    int node_size = 0;
    check(MPI_Comm_size(node, &node_size), "MPI_Comm_size");
    check(MPI_Comm_free(&node), "MPI_Comm_free");
    if (node_size != size_) return nullptr;
    return std::make_unique<MpiMemory>(comm_, bytes);
  }

  std::unique_ptr<Transport> split(const Group& group) override {
    MPI_Comm child = MPI_COMM_NULL;
    const int color = group.color < 0 ? MPI_UNDEFINED : group.color;
    check(MPI_Comm_split(comm_, color, group.rank, &child), "MPI_Comm_split");
    return child == MPI_COMM_NULL ? nullptr : std::make_unique<MpiTransport>(child, options_);
  }

  void close() override {
    if (comm_ == MPI_COMM_WORLD)
      check(MPI_Finalize(), "MPI_Finalize");
    else
      check(MPI_Comm_free(&comm_), "MPI_Comm_free");
  }

  void abort(int code) override { MPI_Abort(MPI_COMM_WORLD, code); }

 private:
  // MPI counts in int: a long piece travels as several messages, which arrive in order.
  template <class Start>
  void for_each_message(const Piece& piece, Start start) const {
    std::span<std::byte> rest = piece.bytes;
    do {
      const std::size_t bytes =
          std::min(rest.size(), static_cast<std::size_t>(options_.message_bytes));
      start(piece.peer, rest.data(), static_cast<int>(bytes));
      rest = rest.subspan(bytes);
    } while (!rest.empty());
  }

  MPI_Comm comm_;
  MpiOptions options_;
  int rank_ = 0;
  int size_ = 0;
};

}  // namespace

std::unique_ptr<Communicator> make_mpi(const MpiOptions& options) {
  PT_CHECK(options.message_bytes > 0 && options.message_bytes <= std::int64_t{1} << 30);
  // Alone, MPI_Init_thread would make a world of one, of which each rank would think it is all.
  if (!is_launched())
    throw EngineError(ExitCode::kEnvironment, "several ranks need a launcher, and none answered",
                      "start the ranks by mpirun or by srun --mpi=pmix");
  // SERIALIZED: a communication thread may be the one that calls MPI.
  int provided = MPI_THREAD_SINGLE;
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
  if (provided < MPI_THREAD_SERIALIZED)
    throw EngineError(ExitCode::kEnvironment,
                      "this MPI cannot be called from a thread other than the main one",
                      "use an Open MPI with MPI_THREAD_SERIALIZED or more");
  return make_world(std::make_unique<MpiTransport>(MPI_COMM_WORLD, options));
}

}  // namespace ptrain::comm
