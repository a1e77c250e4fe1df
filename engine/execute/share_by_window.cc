// One window of all ranks. Rank r's segment holds its whole gradients; the first rank of each
// replica has the replica's whole parameters behind them, of which each rank of the shard axis
// writes its shard: dense ones, then experts, which may have other replicas and shards. Epochs tell
// how far a rank is; reductions are counted from 1 in the order of the reduce lane, which is the
// same on all ranks.
#include <algorithm>
#include <cstring>

#include "core/base/divide.h"
#include "core/program/gradient_places.h"
#include "engine/base/engine_error.h"
#include "engine/base/fault.h"
#include "engine/comm/phases.h"
#include "engine/comm/window.h"
#include "engine/execute/sharing.h"

namespace ptrain::execute {
namespace {

using program::MemoryClass;
using Epoch = std::uint64_t;

enum Slot : int {
  kProgram,  // programs begun
  kWritten,  // reductions whose gradients are whole
  kReduced,  // reductions whose own shard is the sum over the shard axis; the peers are read
  kSliced,   // ... of whose shard an own slice is the sum over the replicas too
  kCopied,   // ... which have taken the other slices; the replicas are read
  kNumSlots
};

constexpr std::int64_t kAlignment = 64;
std::int64_t align(std::int64_t bytes) { return round_up(bytes, kAlignment); }

// World ranks that a rank shares parameters with, itself among them, and its place among them.
struct Peers {
  std::vector<int> shards, replicas;
  int shard = 0, replica = 0;
  bool sharded() const { return shards.size() > 1; }
  bool replicated() const { return replicas.size() > 1; }
  bool leads() const { return shard == 0; }  // its segment holds the replica's parameters
};

Peers dense_peers(const mesh::Layout& layout, int rank) {
  const mesh::Coordinates seat = mesh::coordinates_of(layout, rank);
  Peers peers{{}, {}, seat.shard_rank(layout), seat.dp};
  mesh::Coordinates peer = seat;
  for (peer.shard = 0; peer.shard < layout.shard; ++peer.shard)
    for (peer.cp = 0; peer.cp < layout.cp; ++peer.cp)
      peers.shards.push_back(mesh::rank_of(layout, peer));
  peer = seat;
  for (peer.dp = 0; peer.dp < layout.dp; ++peer.dp)
    peers.replicas.push_back(mesh::rank_of(layout, peer));
  return peers;
}

// In the order of ranks edp is outermost, then come eshard and the ranks that share the experts.
Peers expert_peers(const mesh::Layout& layout, int rank) {
  const mesh::ExpertCoordinates seat = mesh::expert_coordinates_of(layout, rank);
  const int between = layout.ep * layout.etp, shards = mesh::num_expert_shards(layout);
  Peers peers{{}, {}, seat.eshard, seat.edp};
  for (int shard = 0; shard < shards; ++shard)
    peers.shards.push_back(rank + (shard - seat.eshard) * between);
  for (int replica = 0; replica < mesh::num_expert_replicas(layout); ++replica)
    peers.replicas.push_back(rank + (replica - seat.edp) * shards * between);
  return peers;
}

class WindowSharing final : public Sharing {
 public:
  explicit WindowSharing(const SharingInput& input)
      : layout_(input.layout),
        element_(size_of(input.architecture.dtype)),
        dtype_(input.architecture.dtype),
        arena_(input.arena),
        buffers_(mesh::plan_buffers(input.architecture, layout_)),
        places_(program::place_gradients({input.architecture, layout_, buffers_})),
        groups_(input.architecture.groups),
        rank_(input.communicators.world.rank()),
        dense_(dense_peers(layout_, rank_)),
        experts_(expert_peers(layout_, rank_)),
        last_over_shard_(buffers_.size()),
        last_over_replicas_(buffers_.size()) {
    place_parameters();
    window_ = input.communicators.world.make_window(segment_bytes(), kNumSlots);
    if (window_ == nullptr)
      throw EngineError(ExitCode::kEnvironment,
                        "the plan shares parameters inside one node, but the ranks are on several",
                        "plan again for these nodes");
    count(1);
    clear();
  }

  state::GroupBuffer::Place place_of(int group) const override {
    const auto index = static_cast<std::size_t>(group);
    state::GroupBuffer::Place place;
    place.shard_rank = peers(index).shard;
    place.shard_gradients = mesh::shards_gradients(groups_[index], layout_);
    place.shared_gradients = window_->segment(rank_) + places_.offsets[index] * element_;
    if (peers(index).sharded()) place.shared_parameters = parameters(index);
    return place;
  }

  void begin_program() override { window_->publish(kProgram, ++program_); }

  std::vector<LaneQueue::Stage> gather(state::GroupBuffer& group) override {
    group.open_whole();
    return {[this, &of = peers(group)] {
      fault::point("train.gather.start");
      return window_->expect(of.shards, kProgram, program_);
    }};
  }

  std::vector<LaneQueue::Stage> reduce(state::GroupBuffer& group, bool over_replicas) override {
    const Epoch epoch = ++num_reductions_;
    const auto index = static_cast<std::size_t>(group.plan().group);
    const bool replicas_meet = peers(group).replicated() && over_replicas;
    window_->publish(kWritten, epoch);
    std::vector<LaneQueue::Stage> stages;
    if (peers(group).sharded()) add_shard_stages(stages, group, epoch, replicas_meet);
    if (replicas_meet) add_replica_stages(stages, group, epoch);
    last_over_shard_[index] = epoch;
    if (replicas_meet) last_over_replicas_[index] = epoch;
    return stages;
  }

  // Of all groups that have memory in common with this one.
  void begin_write(int group) override {
    const auto begin = [&](std::size_t g) { return places_.offsets[g]; };
    const auto end = [&](std::size_t g) { return places_.offsets[g] + buffers_[g].total(); };
    const auto own = static_cast<std::size_t>(group);
    for (std::size_t other = 0; other < buffers_.size(); ++other) {
      if (begin(other) >= end(own) || begin(own) >= end(other)) continue;
      const Peers& readers = peers(other);
      if (readers.sharded()) await_readers(readers.shards, kReduced, last_over_shard_[other]);
      if (readers.replicated())
        await_readers(readers.replicas, kCopied, last_over_replicas_[other]);
    }
  }

  void close() override {
    count(-1);
    window_->close();
  }

 private:
  const Peers& peers(std::size_t group) const { return groups_[group].experts ? experts_ : dense_; }
  const Peers& peers(const state::GroupBuffer& group) const {
    return peers(static_cast<std::size_t>(group.plan().group));
  }

  void place_parameters() {
    for (std::size_t group = 0; group < buffers_.size(); ++group) {
      std::int64_t& bytes = groups_[group].experts ? expert_bytes_ : dense_bytes_;
      parameter_offsets_.push_back(bytes);
      if (peers(group).sharded())
        bytes += align(buffers_[group].total() * parameter_element(group));
    }
  }

  std::int64_t parameter_element(std::size_t group) const {
    return size_of(groups_[group].compute_dtype);
  }
  std::int64_t gradient_bytes() const { return places_.elements * element_; }

  std::int64_t segment_bytes() const {
    return align(gradient_bytes()) + (dense_.leads() ? dense_bytes_ : 0) +
           (experts_.leads() ? expert_bytes_ : 0);
  }

  // Whole, of this rank's replica.
  std::byte* parameters(std::size_t group) const {
    const int leader = peers(group).shards.front();
    const bool behind_dense = groups_[group].experts && dense_peers(layout_, leader).leads();
    return window_->segment(leader) + align(gradient_bytes()) + (behind_dense ? dense_bytes_ : 0) +
           parameter_offsets_[group];
  }

  std::byte* own_shard(std::size_t group) const {
    return parameters(group) +
           buffers_[group].shard_offset(peers(group).shard) * parameter_element(group);
  }

  std::int64_t shard_bytes(std::size_t group) const {
    return buffers_[group].shard_sizes[static_cast<std::size_t>(peers(group).shard)] *
           parameter_element(group);
  }

  // Tells the arena of this rank's part; sign -1: that it is gone.
  void count(std::int64_t sign) {
    arena_.note(MemoryClass::kGradients, sign * gradient_bytes());
    for (std::size_t group = 0; group < buffers_.size(); ++group)
      if (peers(group).sharded()) arena_.note(MemoryClass::kParameters, sign * shard_bytes(group));
  }

  // By each rank for itself: a page lies in the memory of the core that touches it first.
  void clear() {
    std::memset(window_->segment(rank_), 0, static_cast<std::size_t>(gradient_bytes()));
    for (std::size_t group = 0; group < buffers_.size(); ++group)
      if (peers(group).sharded())
        std::memset(own_shard(group), 0, static_cast<std::size_t>(shard_bytes(group)));
  }

  // The own shard of the group, as it lies in every segment.
  comm::WindowRun own_run(const state::GroupBuffer& group) const {
    const auto index = static_cast<std::size_t>(group.plan().group);
    const auto shard = static_cast<std::size_t>(peers(index).shard);
    return {dtype_, (places_.offsets[index] + group.shard_offsets()[shard]) * element_,
            group.plan().shard_sizes[shard]};
  }

  // A rank only writes runs that no other rank reads at that time, so sums need no memory.
  void add_shard_stages(std::vector<LaneQueue::Stage>& stages, state::GroupBuffer& group,
                        Epoch epoch, bool replicas_follow) {
    const Peers& of = peers(group);
    stages.push_back([this, &of, epoch] { return window_->expect(of.shards, kWritten, epoch); });
    stages.push_back([this, &of, &group, epoch, replicas_follow]() -> comm::WorkHandle {
      fault::point("train.reduce.scatter");
      const comm::WindowRun run = own_run(group);
      comm::reduce_from_window(*window_, of.shards, run, at(rank_, run));
      if (replicas_follow) group.add_earlier();
      window_->publish(kReduced, epoch);
      return nullptr;
    });
  }

  // Each replica adds up a slice and copies the others: 3/2 of the shard read where there are two,
  // and no memory, against 2 and a shard if each added up all.
  void add_replica_stages(std::vector<LaneQueue::Stage>& stages, const state::GroupBuffer& group,
                          Epoch epoch) {
    const Peers& of = peers(group);
    const Slot before = of.sharded() ? kReduced : kWritten;
    stages.push_back(
        [this, &of, before, epoch] { return window_->expect(of.replicas, before, epoch); });
    stages.push_back([this, &of, run = own_run(group), epoch] {
      fault::point("train.reduce.replicas");
      const comm::WindowRun slice = slice_of(run, of, of.replica);
      comm::reduce_from_window(*window_, of.replicas, slice, at(rank_, slice));
      window_->publish(kSliced, epoch);
      return window_->expect(of.replicas, kSliced, epoch);
    });
    stages.push_back([this, &of, run = own_run(group), epoch]() -> comm::WorkHandle {
      for (std::size_t replica = 0; replica < of.replicas.size(); ++replica) {
        const comm::WindowRun slice = slice_of(run, of, static_cast<int>(replica));
        const int peer = of.replicas[replica];
        if (peer != rank_)
          std::memcpy(at(rank_, slice), at(peer, slice),
                      static_cast<std::size_t>(slice.count * element_));
      }
      window_->publish(kCopied, epoch);
      return nullptr;
    });
  }

  comm::WindowRun slice_of(const comm::WindowRun& run, const Peers& of, int replica) const {
    const auto count = static_cast<int>(of.replicas.size());
    const comm::Runs slices = comm::even_runs(nullptr, dtype_, run.count, count);
    const auto index = static_cast<std::size_t>(replica);
    return {dtype_, run.offset + slices.offsets[index] * element_, slices.counts[index]};
  }

  std::byte* at(int rank, const comm::WindowRun& run) const {
    return window_->segment(rank) + run.offset;
  }

  void await_readers(const std::vector<int>& peers, Slot slot, Epoch epoch) {
    if (epoch == 0) return;
    PT_CHECK(window_->epoch(rank_, slot) >= epoch);  // the program waited for its own reduction
    const comm::WorkHandle readers = window_->expect(peers, slot, epoch);
    if (!readers->done()) readers->wait();
  }

  mesh::Layout layout_;
  std::int64_t element_;  // bytes, of gradients
  DType dtype_;
  Arena& arena_;
  std::vector<mesh::BufferPlan> buffers_;
  program::GradientPlaces places_;
  std::vector<model::GroupSpec> groups_;
  int rank_;
  Peers dense_, experts_;
  std::vector<std::int64_t> parameter_offsets_;  // bytes, by group, among those of their kind
  std::int64_t dense_bytes_ = 0, expert_bytes_ = 0;
  std::unique_ptr<comm::Window> window_;
  Epoch program_ = 0;
  Epoch num_reductions_ = 0;
  std::vector<Epoch> last_over_shard_, last_over_replicas_;  // reductions, by group
};

}  // namespace

std::unique_ptr<Sharing> share_by_window(const SharingInput& input) {
  return std::make_unique<WindowSharing>(input);
}

}  // namespace ptrain::execute
