#include <algorithm>

#include "core/program/passes/passes.h"

namespace ptrain::program {
namespace {

class Reduction {
 public:
  Reduction(Draft draft, const PassContext& context)
      : context_(context),
        draft_(std::move(draft)),
        out_(draft_.successor()),
        num_reductions_(static_cast<std::size_t>(context.architecture.num_groups())) {}

  Draft run() {
    find_last_writes();
    for (std::size_t i = 0; i < draft_.actions().size(); ++i) {
      Action& action = draft_.actions()[i];
      const bool writes = !groups_of(action).empty();
      if (writes) wait_for_buffers(action);
      out_.keep(std::move(action));
      if (writes) reduce_after(i);
    }
    return std::move(out_);
  }

 private:
  struct InFlight {
    int id;
    int group;
  };

  const mesh::Layout& layout() const { return context_.layout; }
  const model::GroupSpec& spec(int group) const {
    return context_.architecture.groups[static_cast<std::size_t>(group)];
  }
  bool each_micro_batch(int group) const { return mesh::shards_gradients(spec(group), layout()); }
  std::span<const int> groups_of(const Action& action) const {
    return groups_written(action, context_.architecture);
  }

  // Counts a reduction and tells whether others follow: replicas only add up with the last.
  bool is_followed(int group) {
    const std::int64_t count = ++num_reductions_[static_cast<std::size_t>(group)];
    return each_micro_batch(group) && count < layout().num_micro_batches;
  }

  // Where the position of the last write before one reduction stands.
  std::size_t slot(int group, int micro_batch) const {
    const auto micro_batches = static_cast<std::size_t>(layout().num_micro_batches);
    return static_cast<std::size_t>(group) * micro_batches +
           (each_micro_batch(group) ? static_cast<std::size_t>(micro_batch) : 0);
  }

  void find_last_writes() {
    last_write_.resize(num_reductions_.size() *
                       static_cast<std::size_t>(layout().num_micro_batches));
    for (std::size_t i = 0; i < draft_.actions().size(); ++i) {
      const Action& action = draft_.actions()[i];
      for (int group : groups_of(action)) last_write_[slot(group, action.micro_batch)] = i;
    }
  }

  // A reduction gives its whole buffer back when it is waited for. One may run beside a backward;
  // the others are waited for before that takes a buffer of its own, which bounds the memory.
  void wait_for_buffers(Action& backward) {
    const std::span<const int> groups = groups_of(backward);
    const auto rewritten = [&](const InFlight& reduction) {
      return std::find(groups.begin(), groups.end(), reduction.group) != groups.end();
    };
    while (in_flight_.size() > 1 || std::any_of(in_flight_.begin(), in_flight_.end(), rewritten)) {
      backward.after.push_back(in_flight_.front().id);
      in_flight_.erase(in_flight_.begin());
    }
  }

  void reduce_after(std::size_t position) {
    const int backward = out_.actions().back().id;
    const int micro_batch = out_.actions().back().micro_batch;
    for (int group : groups_of(out_.actions().back())) {
      if (last_write_[slot(group, micro_batch)] != position) continue;
      if (mesh::num_reduced(spec(group), layout()) == 1) continue;
      Action reduce;
      reduce.lane = Lane::kReduce;
      reduce.kind = Kind::kReduceGrad;
      reduce.group = group;
      if (each_micro_batch(group)) reduce.micro_batch = micro_batch;
      if (is_followed(group) && mesh::num_replicas_of(spec(group), layout()) > 1)
        reduce.attributes.emplace_back("axis", "shard");
      reduce.after.push_back(backward);
      const int id = out_.add(std::move(reduce));
      if (each_micro_batch(group)) in_flight_.push_back({id, group});
    }
  }

  const PassContext& context_;
  Draft draft_;
  Draft out_;
  std::vector<std::size_t> last_write_;
  std::vector<std::int64_t> num_reductions_;  // by group
  std::vector<InFlight> in_flight_;
};

}  // namespace

Draft add_reduction(Draft draft, const PassContext& context) {
  return Reduction(std::move(draft), context).run();
}

}  // namespace ptrain::program
