#include "engine/base/fault.h"
#include "engine/base/planted.h"
#include "engine/execute/sharing.h"

namespace ptrain::execute {
namespace {

class Messages final : public Sharing {
 public:
  explicit Messages(const SharingInput& input)
      : communicators_(input.communicators),
        dtype_(input.architecture.dtype),
        layout_(input.layout),
        groups_(input.architecture.groups) {}

  state::GroupBuffer::Place place_of(int group) const override {
    state::GroupBuffer::Place place;
    place.shard_rank = mesh::shard_rank_of(spec(group), layout_, communicators_.world.rank());
    place.shard_gradients = layout_.zero > 1 && ranks_of(group).reduce != nullptr;
    return place;
  }
  void begin_program() override {}

  std::vector<LaneQueue::Stage> gather(state::GroupBuffer& group) override {
    std::byte* whole = group.open_whole();
    if (planted(Bug::kStaleGather)) return {};
    return {[this, &group, whole] {
      fault::point("train.gather.start");
      return ranks_of(group.plan().group)
          .gather->all_gather_v(whole, spec(group.plan().group).compute_dtype,
                                group.shard_offsets(), group.plan().shard_sizes);
    }};
  }

  std::vector<LaneQueue::Stage> reduce(state::GroupBuffer& group, bool over_replicas) override {
    std::vector<LaneQueue::Stage> stages;
    const Ranks ranks = ranks_of(group.plan().group);
    if (ranks.reduce != nullptr)
      stages.push_back([this, &group, ranks] {
        fault::point("train.reduce.scatter");
        return ranks.reduce->reduce_scatter_v(group.whole_gradients(), dtype_,
                                              group.shard_offsets(), group.plan().shard_sizes);
      });
    if (ranks.replicas == nullptr || !over_replicas) return stages;
    stages.push_back([&group] {
      group.add_earlier();
      return nullptr;
    });
    const int num_sums = planted(Bug::kMissingReduction)  ? 0
                         : planted(Bug::kDoubleReduction) ? 2
                                                          : 1;
    for (int i = 0; i < num_sums; ++i)
      stages.push_back([&group, ranks] {
        fault::point("train.reduce.replicas");
        const Tensor shard = group.reduced_shard();
        return ranks.replicas->all_reduce(static_cast<std::byte*>(shard.data), shard.dtype,
                                          shard.cols, comm::ReduceOp::kSum);
      });
    return stages;
  }

  void begin_write(int) override {}
  void close() override {}

 private:
  // Those that a group's parameters and gradients travel between; null where there is but one.
  struct Ranks {
    comm::Communicator *gather, *reduce, *replicas;
  };
  const model::GroupSpec& spec(int group) const { return groups_[static_cast<std::size_t>(group)]; }
  Ranks ranks_of(int group) const {
    const Communicators& all = communicators_;
    const bool dense = planted(Bug::kExpertsOverDense);
    if (spec(group).experts)
      return {all.expert_gather, all.expert_reduce, dense ? all.dp_reduce : all.expert_replicas};
    return {all.shard_gather, all.shard_reduce, all.dp_reduce};
  }

  Communicators communicators_;
  DType dtype_;
  mesh::Layout layout_;
  std::vector<model::GroupSpec> groups_;
};

}  // namespace

std::unique_ptr<Sharing> share_by_messages(const SharingInput& input) {
  return std::make_unique<Messages>(input);
}

std::unique_ptr<Sharing> make_sharing(const SharingInput& input) {
  return input.layout.shared_window ? share_by_window(input) : share_by_messages(input);
}

}  // namespace ptrain::execute
