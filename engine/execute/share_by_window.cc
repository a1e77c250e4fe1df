// One window of all ranks. Rank r's segment holds its whole gradients; the first rank of each
// replica has the replica's whole parameters behind them, of which each rank of the shard axis
// writes its shard. Epochs tell how far a rank is; reductions are counted from 1 in the order of
// the reduce lane, which is the same on all ranks.
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

class WindowSharing final : public Sharing {
 public:
  explicit WindowSharing(const SharingInput& input)
      : layout_(input.layout),
        element_(size_of(input.architecture.dtype)),
        parameter_element_(size_of(input.architecture.compute_dtype)),
        dtype_(input.architecture.dtype),
        arena_(input.arena),
        buffers_(mesh::plan_buffers(input.architecture, layout_)),
        places_(program::place_gradients({input.architecture, layout_, buffers_})),
        rank_(input.communicators.world.rank()),
        seat_(mesh::coordinates_of(layout_, rank_)),
        last_over_shard_(buffers_.size()),
        last_over_replicas_(buffers_.size()) {
    if (std::ranges::any_of(input.architecture.groups, &model::GroupSpec::experts) &&
        mesh::experts_have_axes(layout_))
      throw EngineError(ExitCode::kBug, "experts on axes of their own have no place in a window");
    find_peers();
    place_parameters();
    window_ = input.communicators.world.make_window(segment_bytes(rank_), kNumSlots);
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
    place.shard_rank = seat_.shard_rank(layout_);
    place.shard_gradients = layout_.shards_gradients();
    place.shared_gradients = window_->segment(rank_) + places_.offsets[index] * element_;
    if (layout_.num_shards() > 1)
      place.shared_parameters = parameters() + parameter_offsets_[index];
    return place;
  }

  void begin_program() override { window_->publish(kProgram, ++program_); }

  std::vector<LaneQueue::Stage> gather(state::GroupBuffer& group) override {
    group.open_whole();
    return {[this] {
      fault::point("train.gather.start");
      return window_->expect(shard_peers_, kProgram, program_);
    }};
  }

  std::vector<LaneQueue::Stage> reduce(state::GroupBuffer& group, bool over_replicas) override {
    const Epoch epoch = ++num_reductions_;
    const auto index = static_cast<std::size_t>(group.plan().group);
    const bool replicas_meet = layout_.dp > 1 && over_replicas;
    window_->publish(kWritten, epoch);
    std::vector<LaneQueue::Stage> stages;
    if (layout_.num_shards() > 1) add_shard_stages(stages, group, epoch, replicas_meet);
    if (replicas_meet) add_replica_stages(stages, group, epoch);
    last_over_shard_[index] = epoch;
    if (replicas_meet) last_over_replicas_[index] = epoch;
    return stages;
  }

  void begin_write(int group) override {
    if (layout_.num_shards() > 1)
      await_readers(shard_peers_, kReduced, last_use(group, last_over_shard_));
    if (layout_.dp > 1) await_readers(dp_peers_, kCopied, last_use(group, last_over_replicas_));
  }

  void close() override {
    count(-1);
    window_->close();
  }

 private:
  void find_peers() {
    mesh::Coordinates peer = seat_;
    for (peer.shard = 0; peer.shard < layout_.shard; ++peer.shard)
      for (peer.cp = 0; peer.cp < layout_.cp; ++peer.cp)
        shard_peers_.push_back(mesh::rank_of(layout_, peer));
    peer = seat_;
    for (peer.dp = 0; peer.dp < layout_.dp; ++peer.dp)
      dp_peers_.push_back(mesh::rank_of(layout_, peer));
  }

  void place_parameters() {
    for (const mesh::BufferPlan& buffer : buffers_) {
      parameter_offsets_.push_back(parameter_bytes_);
      parameter_bytes_ += align(buffer.total() * parameter_element_);
    }
  }

  std::int64_t gradient_bytes() const { return places_.elements * element_; }

  std::int64_t segment_bytes(int rank) const {
    const bool has_parameters = layout_.num_shards() > 1 && rank == shard_peers_.front();
    return align(gradient_bytes()) + (has_parameters ? parameter_bytes_ : 0);
  }

  // Whole, of this rank's replica.
  std::byte* parameters() const {
    return window_->segment(shard_peers_.front()) + align(gradient_bytes());
  }

  std::byte* own_shard(std::size_t group) const {
    return parameters() + parameter_offsets_[group] +
           buffers_[group].shard_offset(seat_.shard_rank(layout_)) * parameter_element_;
  }

  std::int64_t shard_bytes(std::size_t group) const {
    return buffers_[group].shard_sizes[static_cast<std::size_t>(seat_.shard_rank(layout_))] *
           parameter_element_;
  }

  // Tells the arena of this rank's part; sign -1: that it is gone.
  void count(std::int64_t sign) {
    arena_.note(MemoryClass::kGradients, sign * gradient_bytes());
    if (layout_.num_shards() == 1) return;
    for (std::size_t group = 0; group < buffers_.size(); ++group)
      arena_.note(MemoryClass::kParameters, sign * shard_bytes(group));
  }

  // By each rank for itself: a page lies in the memory of the core that touches it first.
  void clear() {
    std::memset(window_->segment(rank_), 0, static_cast<std::size_t>(gradient_bytes()));
    if (layout_.num_shards() == 1) return;
    for (std::size_t group = 0; group < buffers_.size(); ++group)
      std::memset(own_shard(group), 0, static_cast<std::size_t>(shard_bytes(group)));
  }

  // The own shard of the group, as it lies in every segment.
  comm::WindowRun own_run(const state::GroupBuffer& group) const {
    const auto index = static_cast<std::size_t>(group.plan().group);
    const auto shard = static_cast<std::size_t>(seat_.shard_rank(layout_));
    return {dtype_, (places_.offsets[index] + group.shard_offsets()[shard]) * element_,
            group.plan().shard_sizes[shard]};
  }

  // A rank only writes runs that no other rank reads at that time, so sums need no memory.
  void add_shard_stages(std::vector<LaneQueue::Stage>& stages, state::GroupBuffer& group,
                        Epoch epoch, bool replicas_follow) {
    stages.push_back([this, epoch] { return window_->expect(shard_peers_, kWritten, epoch); });
    stages.push_back([this, &group, epoch, replicas_follow]() -> comm::WorkHandle {
      fault::point("train.reduce.scatter");
      const comm::WindowRun run = own_run(group);
      comm::reduce_from_window(*window_, shard_peers_, run, at(rank_, run));
      if (replicas_follow) group.add_earlier();
      window_->publish(kReduced, epoch);
      return nullptr;
    });
  }

  // Each replica adds up a slice and copies the others: 3/2 of the shard read where there are two,
  // and no memory, against 2 and a shard if each added up all.
  void add_replica_stages(std::vector<LaneQueue::Stage>& stages, const state::GroupBuffer& group,
                          Epoch epoch) {
    const Slot before = layout_.num_shards() > 1 ? kReduced : kWritten;
    stages.push_back([this, before, epoch] { return window_->expect(dp_peers_, before, epoch); });
    stages.push_back([this, run = own_run(group), epoch] {
      fault::point("train.reduce.replicas");
      const comm::WindowRun slice = slice_of(run, seat_.dp);
      comm::reduce_from_window(*window_, dp_peers_, slice, at(rank_, slice));
      window_->publish(kSliced, epoch);
      return window_->expect(dp_peers_, kSliced, epoch);
    });
    stages.push_back([this, run = own_run(group), epoch]() -> comm::WorkHandle {
      for (int replica = 0; replica < layout_.dp; ++replica) {
        const comm::WindowRun slice = slice_of(run, replica);
        const int peer = dp_peers_[static_cast<std::size_t>(replica)];
        if (peer != rank_)
          std::memcpy(at(rank_, slice), at(peer, slice),
                      static_cast<std::size_t>(slice.count * element_));
      }
      window_->publish(kCopied, epoch);
      return nullptr;
    });
  }

  comm::WindowRun slice_of(const comm::WindowRun& run, int replica) const {
    const comm::Runs slices = comm::even_runs(nullptr, dtype_, run.count, layout_.dp);
    const auto index = static_cast<std::size_t>(replica);
    return {dtype_, run.offset + slices.offsets[index] * element_, slices.counts[index]};
  }

  std::byte* at(int rank, const comm::WindowRun& run) const {
    return window_->segment(rank) + run.offset;
  }

  // The last of the reductions of groups that have memory in common with this one.
  Epoch last_use(int group, const std::vector<Epoch>& last_reductions) const {
    const auto begin = [&](std::size_t g) { return places_.offsets[g]; };
    const auto end = [&](std::size_t g) { return places_.offsets[g] + buffers_[g].total(); };
    const auto own = static_cast<std::size_t>(group);
    Epoch last = 0;
    for (std::size_t other = 0; other < buffers_.size(); ++other)
      if (begin(other) < end(own) && begin(own) < end(other))
        last = std::max(last, last_reductions[other]);
    return last;
  }

  void await_readers(const std::vector<int>& peers, Slot slot, Epoch epoch) {
    if (epoch == 0) return;
    PT_CHECK(window_->epoch(rank_, slot) >= epoch);  // the program waited for its own reduction
    const comm::WorkHandle readers = window_->expect(peers, slot, epoch);
    if (!readers->done()) readers->wait();
  }

  mesh::Layout layout_;
  std::int64_t element_, parameter_element_;  // bytes, of gradients and of whole parameters
  DType dtype_;
  Arena& arena_;
  std::vector<mesh::BufferPlan> buffers_;
  program::GradientPlaces places_;
  int rank_;
  mesh::Coordinates seat_;
  std::vector<int> shard_peers_, dp_peers_;      // world ranks, this one among them
  std::vector<std::int64_t> parameter_offsets_;  // bytes, by group
  std::int64_t parameter_bytes_ = 0;
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
