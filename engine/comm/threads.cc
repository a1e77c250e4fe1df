// Ranks that are threads of one process: a message is one copy, made by whoever comes second.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <new>
#include <tuple>

#include "engine/base/engine_error.h"
#include "engine/comm/transport.h"

namespace ptrain::comm {
namespace {

// Which world rank aborted; of a world and all its splits.
struct Failure {
  std::atomic<int> rank = -1;
};

struct Post {
  std::span<std::byte> bytes;
  class ThreadsTransfer* transfer = nullptr;
};

// What the ranks of one group share. The mutex guards all of it, and the transfers' pieces.
struct Hub {
  using Route = std::tuple<int, int, int>;  // from, to, tag
  using Posts = std::map<Route, std::deque<Post>>;
  std::mutex mutex;
  Posts sends;
  Posts receives;
  // Owned by those who use them: every rank has taken its own before the first may close.
  std::map<std::pair<int, int>, std::weak_ptr<Hub>> children;  // by (nth split, color)
  std::map<int, std::weak_ptr<std::byte>> memory;              // by nth share
};

class ThreadsTransfer final : public Transfer {
 public:
  ThreadsTransfer(std::shared_ptr<Hub> hub, int rank, int tag)
      : hub_(std::move(hub)), rank_(rank), tag_(tag) {}
  ~ThreadsTransfer() override {
    const std::lock_guard lock(hub_->mutex);
    if (!open_peers_.empty()) withdraw();
  }

  void post(std::span<const Piece> sends, std::span<const Piece> receives) {
    const std::lock_guard lock(hub_->mutex);
    for (const Piece& piece : sends)
      meet({rank_, piece.peer, tag_}, piece, hub_->receives, hub_->sends, true);
    for (const Piece& piece : receives)
      meet({piece.peer, rank_, tag_}, piece, hub_->sends, hub_->receives, false);
  }
  bool done() override {
    const std::lock_guard lock(hub_->mutex);
    return open_peers_.empty();
  }
  std::vector<int> missing() override {
    const std::lock_guard lock(hub_->mutex);
    std::vector<int> peers = open_peers_;
    std::ranges::sort(peers);
    peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
    return peers;
  }

 private:
  // Copies if the other side waits, else waits for it.
  void meet(Hub::Route route, const Piece& piece, Hub::Posts& others, Hub::Posts& own,
            bool is_send) {
    std::deque<Post>& waiting = others[route];
    if (waiting.empty()) {
      own[route].push_back({piece.bytes, this});
      open_peers_.push_back(piece.peer);
      return;
    }
    const Post other = waiting.front();
    waiting.pop_front();
    other.transfer->close_piece(rank_);
    const std::span<std::byte> from = is_send ? piece.bytes : other.bytes;
    const std::span<std::byte> to = is_send ? other.bytes : piece.bytes;
    PT_CHECK(from.size() == to.size());
    if (!from.empty()) std::memmove(to.data(), from.data(), from.size());
  }
  void close_piece(int peer) { open_peers_.erase(std::ranges::find(open_peers_, peer)); }
  void withdraw() {
    for (Hub::Posts* posts : {&hub_->sends, &hub_->receives})
      for (auto& [route, waiting] : *posts)
        std::erase_if(waiting, [&](const Post& post) { return post.transfer == this; });
  }

  std::shared_ptr<Hub> hub_;
  int rank_;
  int tag_;
  std::vector<int> open_peers_;  // one entry a piece that waits for its other side
};

class ThreadsMemory final : public SharedMemory {
 public:
  explicit ThreadsMemory(std::shared_ptr<std::byte> memory) : memory_(std::move(memory)) {}
  std::byte* data() override { return memory_.get(); }
  void close() override { memory_.reset(); }

 private:
  std::shared_ptr<std::byte> memory_;
};

std::shared_ptr<std::byte> allocate(std::int64_t bytes) {
  const std::size_t capacity = (static_cast<std::size_t>(bytes) / 64 + 1) * 64;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(64, capacity));
  if (memory == nullptr) throw std::bad_alloc();
  return {memory, [](std::byte* data) { std::free(data); }};
}

struct ThreadsWorld {
  std::shared_ptr<Failure> failure = std::make_shared<Failure>();
  double time_limit_s = 0;
  bool is_process = false;  // one rank that is the whole process: abort ends it
};

class ThreadsTransport final : public Transport {
 public:
  ThreadsTransport(ThreadsWorld world, std::shared_ptr<Hub> hub, int world_rank, int rank, int size)
      : world_(std::move(world)),
        hub_(std::move(hub)),
        world_rank_(world_rank),
        rank_(rank),
        size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  double time_limit_s() const override { return world_.time_limit_s; }

  std::unique_ptr<Transfer> start(std::span<const Piece> sends, std::span<const Piece> receives,
                                  int tag) override {
    auto transfer = std::make_unique<ThreadsTransfer>(hub_, rank_, tag);
    transfer->post(sends, receives);
    return transfer;
  }

  std::unique_ptr<SharedMemory> share(std::int64_t bytes) override {
    const std::lock_guard lock(hub_->mutex);
    std::weak_ptr<std::byte>& known = hub_->memory[num_shares_++];
    std::shared_ptr<std::byte> memory = known.lock();
    if (memory == nullptr) known = memory = allocate(bytes);
    return std::make_unique<ThreadsMemory>(memory);
  }

  std::unique_ptr<Transport> split(const Group& group) override {
    const int split = num_splits_++;
    if (group.color < 0) return nullptr;
    const std::lock_guard lock(hub_->mutex);
    std::weak_ptr<Hub>& known = hub_->children[{split, group.color}];
    std::shared_ptr<Hub> child = known.lock();
    if (child == nullptr) known = child = std::make_shared<Hub>();
    return std::make_unique<ThreadsTransport>(world_, child, world_rank_, group.rank,
                                              static_cast<int>(group.members.size()));
  }

  void close() override {}

  void abort(int code) override {
    if (world_.is_process) std::_Exit(code);
    int nobody = -1;
    world_.failure->rank.compare_exchange_strong(nobody, world_rank_);
  }

  std::optional<int> failed_rank() const override {
    const int rank = world_.failure->rank;
    return rank < 0 ? std::nullopt : std::optional(rank);
  }

 private:
  ThreadsWorld world_;
  std::shared_ptr<Hub> hub_;
  int world_rank_;
  int rank_;
  int size_;
  int num_splits_ = 0;
  int num_shares_ = 0;
};

std::vector<std::unique_ptr<Communicator>> make(int size, const ThreadsWorld& world) {
  const auto hub = std::make_shared<Hub>();
  std::vector<std::unique_ptr<Communicator>> ranks;
  for (int rank = 0; rank < size; ++rank)
    ranks.push_back(make_world(std::make_unique<ThreadsTransport>(world, hub, rank, rank, size)));
  return ranks;
}

}  // namespace

std::unique_ptr<Communicator> make_single() {
  ThreadsWorld world;
  world.is_process = true;
  return std::move(make(1, world).front());
}

std::vector<std::unique_ptr<Communicator>> make_threads(int size, double time_limit_s) {
  ThreadsWorld world;
  world.time_limit_s = time_limit_s;
  return make(size, world);
}

}  // namespace ptrain::comm
