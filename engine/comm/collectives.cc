// The communicator over any transport: each verb is a list of phases (phases.h) under a tag.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "engine/base/engine_error.h"
#include "engine/comm/phases.h"
#include "engine/comm/window.h"

namespace ptrain::comm {
namespace {

// Tag 0 is for exchanges, which only pairs call; collectives take turns with the others, so that a
// late phase of one is never taken for the next.
constexpr int kExchangeTag = 0;
constexpr std::uint64_t kNumTags = 32767;  // as many as the MPI standard promises

class Collectives final : public Communicator {
 public:
  Collectives(std::unique_ptr<Transport> transport, std::shared_ptr<RankState> state,
              std::string name, std::vector<int> world_ranks)
      : transport_(std::move(transport)),
        state_(std::move(state)),
        name_(std::move(name)),
        world_ranks_(std::move(world_ranks)),
        seat_{transport_->rank(), transport_->size()} {}

  ~Collectives() override {
    if (!closed_ && std::uncaught_exceptions() == 0 && !transport_->failed_rank())
      fmt::print(stderr, "communicator {} was never closed: a bug in ptrain\n", name_);
  }

  int rank() const override { return seat_.rank; }
  int size() const override { return seat_.size; }
  const std::string& name() const override { return name_; }
  CollectiveMark last_collective() const override { return state_->mark(); }
  double seconds_waited() const override { return state_->seconds_waited(); }

  WorkHandle all_gather_v(std::byte* buffer, DType dtype, Counts offsets, Counts counts) override {
    return begin("all_gather_v", all_gather_phases(seat_, runs(buffer, dtype, offsets, counts)));
  }

  WorkHandle reduce_scatter_v(std::byte* buffer, DType dtype, Counts offsets,
                              Counts counts) override {
    const Runs all = runs(buffer, dtype, offsets, counts);
    return begin("reduce_scatter_v", reduce_scatter_phases(seat_, all, ReduceOp::kSum));
  }

  WorkHandle all_reduce(std::byte* buffer, DType dtype, std::int64_t count, ReduceOp op) override {
    return begin("all_reduce", all_reduce_phases(seat_, buffer, dtype, count, op));
  }

  WorkHandle broadcast(std::byte* buffer, std::int64_t bytes, int root) override {
    PT_CHECK(root >= 0 && root < seat_.size);
    return begin("broadcast",
                 broadcast_phases(seat_, {buffer, static_cast<std::size_t>(bytes)}, root));
  }

  WorkHandle all_to_all_v(std::span<const Piece> sends, std::span<const Piece> receives) override {
    return begin("all_to_all_v", all_to_all_phases(seat_, sends, receives));
  }

  WorkHandle exchange(std::span<const Piece> sends, std::span<const Piece> receives) override {
    Phase phase;
    phase.sends.assign(sends.begin(), sends.end());
    phase.receives.assign(receives.begin(), receives.end());
    return start(label("exchange", ++num_exchanges_), kExchangeTag, {phase});
  }

  void barrier() override { begin("barrier", barrier_phases(seat_))->wait(); }

  std::unique_ptr<Communicator> split(int color, int key, const std::string& name) override;
  std::unique_ptr<Window> make_window(std::int64_t bytes, int num_slots) override;

  void close() override {
    PT_CHECK(!closed_);
    barrier();  // a time-out names the missing ranks; closing a transport alone would hang
    transport_->close();
    closed_ = true;
  }

  void abort(int code) override { transport_->abort(code); }

 private:
  Runs runs(std::byte* buffer, DType dtype, Counts offsets, Counts counts) const {
    const auto size = static_cast<std::size_t>(seat_.size);
    PT_CHECK(offsets.size() == size && counts.size() == size);
    PT_CHECK(std::ranges::all_of(counts, [](std::int64_t count) { return count >= 0; }));
    return {buffer, dtype, {offsets.begin(), offsets.end()}, {counts.begin(), counts.end()}};
  }

  Label label(std::string_view verb, std::uint64_t sequence) const {
    return {name_, verb, sequence, world_ranks_};
  }

  WorkHandle begin(std::string_view verb, std::vector<Phase> phases) {
    const int tag = 1 + static_cast<int>(++num_collectives_ % kNumTags);
    return start(label(verb, num_collectives_), tag, std::move(phases));
  }

  WorkHandle start(Label label, int tag, std::vector<Phase> phases) {
    PT_CHECK(!closed_);
    state_->set_mark(name_, label.verb, label.sequence);
    return std::make_unique<PhasedWork>(*transport_, state_, std::move(label), tag,
                                        std::move(phases));
  }

  // `mine` of every rank, in rank order.
  template <class T>
  std::vector<T> gather(const T& mine) {
    std::vector<T> all(static_cast<std::size_t>(seat_.size));
    all[static_cast<std::size_t>(seat_.rank)] = mine;
    static_assert(sizeof(T) % sizeof(std::int32_t) == 0);
    const auto count = static_cast<std::int64_t>(sizeof(T) / sizeof(std::int32_t));
    const std::vector<std::int64_t> counts(all.size(), count);
    std::vector<std::int64_t> offsets(all.size());
    for (std::size_t r = 0; r < all.size(); ++r) offsets[r] = static_cast<std::int64_t>(r) * count;
    all_gather_v(reinterpret_cast<std::byte*>(all.data()), DType::kInt32, offsets, counts)->wait();
    return all;
  }

  std::unique_ptr<Transport> transport_;
  std::shared_ptr<RankState> state_;
  std::string name_;
  std::vector<int> world_ranks_;
  Seat seat_;
  std::uint64_t num_collectives_ = 0;
  std::uint64_t num_exchanges_ = 0;
  bool closed_ = false;
};

std::unique_ptr<Communicator> Collectives::split(int color, int key, const std::string& name) {
  struct Choice {
    std::int32_t color, key;
  };
  const std::vector<Choice> choices = gather(Choice{color, key});
  Group group{color, 0, {}};
  for (int rank = 0; rank < seat_.size; ++rank)
    if (choices[static_cast<std::size_t>(rank)].color == color) group.members.push_back(rank);
  std::ranges::stable_sort(group.members, {},
                           [&](int rank) { return choices[static_cast<std::size_t>(rank)].key; });
  const auto me = std::ranges::find(group.members, seat_.rank);
  group.rank = static_cast<int>(me - group.members.begin());
  std::unique_ptr<Transport> transport = transport_->split(group);
  if (color < 0) return nullptr;
  std::vector<int> world_ranks;
  for (const int member : group.members)
    world_ranks.push_back(world_ranks_[static_cast<std::size_t>(member)]);
  return std::make_unique<Collectives>(std::move(transport), state_, name, std::move(world_ranks));
}

std::unique_ptr<Window> Collectives::make_window(std::int64_t bytes, int num_slots) {
  PT_CHECK(bytes >= 0 && num_slots >= 0);
  const WindowShape shape{seat_.rank, num_slots, gather(bytes)};
  std::unique_ptr<SharedMemory> memory = transport_->share(shape.total_bytes());
  if (memory == nullptr) return nullptr;
  if (seat_.rank == 0) std::fill_n(memory->data(), shape.segments_begin(), std::byte{0});
  barrier();
  return std::make_unique<Window>(*this, std::move(memory), shape,
                                  Window::Waiting{state_, *transport_, label("window", 0)});
}

}  // namespace

std::unique_ptr<Communicator> make_world(std::unique_ptr<Transport> transport) {
  std::vector<int> world_ranks(static_cast<std::size_t>(transport->size()));
  std::iota(world_ranks.begin(), world_ranks.end(), 0);
  return std::make_unique<Collectives>(std::move(transport), std::make_shared<RankState>(), "world",
                                       std::move(world_ranks));
}

}  // namespace ptrain::comm
