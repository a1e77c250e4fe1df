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
        compute_dtype_(input.architecture.compute_dtype) {
    place_.shard_rank = mesh::coordinates_of(input.layout, communicators_.world.rank()).shard;
    place_.shard_gradients = input.layout.shard > 1 && input.layout.zero > 1;
  }

  state::GroupBuffer::Place place_of(int) const override { return place_; }
  void begin_program() override {}

  std::vector<LaneQueue::Stage> gather(state::GroupBuffer& group) override {
    std::byte* whole = group.open_whole();
    if (planted(Bug::kStaleGather)) return {};
    return {[this, &group, whole] {
      fault::point("train.gather.start");
      return communicators_.shard_gather->all_gather_v(whole, compute_dtype_, group.shard_offsets(),
                                                       group.plan().shard_sizes);
    }};
  }

  std::vector<LaneQueue::Stage> reduce(state::GroupBuffer& group, bool over_replicas) override {
    std::vector<LaneQueue::Stage> stages;
    if (communicators_.shard_reduce != nullptr)
      stages.push_back([this, &group] {
        fault::point("train.reduce.scatter");
        return communicators_.shard_reduce->reduce_scatter_v(
            group.whole_gradients(), dtype_, group.shard_offsets(), group.plan().shard_sizes);
      });
    if (communicators_.dp_reduce == nullptr || !over_replicas) return stages;
    stages.push_back([&group] {
      group.add_earlier();
      return nullptr;
    });
    const int num_sums = planted(Bug::kMissingReduction)  ? 0
                         : planted(Bug::kDoubleReduction) ? 2
                                                          : 1;
    for (int i = 0; i < num_sums; ++i)
      stages.push_back([this, &group] {
        fault::point("train.reduce.replicas");
        const Tensor shard = group.reduced_shard();
        return communicators_.dp_reduce->all_reduce(static_cast<std::byte*>(shard.data),
                                                    shard.dtype, shard.cols, comm::ReduceOp::kSum);
      });
    return stages;
  }

  void begin_write(int) override {}
  void close() override {}

 private:
  Communicators communicators_;
  DType dtype_, compute_dtype_;
  state::GroupBuffer::Place place_;
};

}  // namespace

std::unique_ptr<Sharing> share_by_messages(const SharingInput& input) {
  return std::make_unique<Messages>(input);
}

std::unique_ptr<Sharing> make_sharing(const SharingInput& input) {
  return input.layout.shared_window ? share_by_window(input) : share_by_messages(input);
}

}  // namespace ptrain::execute
