#include "core/program/offload_plan.h"
#include "core/program/passes/passes.h"

namespace ptrain::program {
namespace {

Action copy_action(Kind kind, int group, int buffer) {
  Action action;
  action.lane = kind == Kind::kFetch ? Lane::kCopyIn : Lane::kCopyOut;
  action.kind = kind;
  action.group = group;
  action.attributes.emplace_back("buffer", std::to_string(buffer));
  return action;
}

class Offloading {
 public:
  Offloading(Draft draft, const PassContext& context)
      : draft_(std::move(draft)),
        out_(draft_.successor()),
        buffers_(ring_buffers(context.architecture)),
        order_(ring_order(buffers_)),
        fetch_(buffers_.size(), -1),
        updates_(buffers_.size()) {}

  // Updates wait for no other update, so they may come in the order of the ring.
  Draft run() {
    for (int i = 0; i < kRingBuffers; ++i) fetch_next(-1);
    for (Action& action : draft_.actions()) {
      const bool waits = action.kind == Kind::kOptimizer && buffer(action.group) >= 0;
      if (waits)
        updates_[static_cast<std::size_t>(action.group)] = std::move(action);
      else
        out_.keep(std::move(action));
    }
    for (const int group : order_) {
      Action& update = updates_[static_cast<std::size_t>(group)];
      update.after.push_back(fetch(group));
      out_.keep(std::move(update));
      fetch_next(offload(group));
    }
    return std::move(out_);
  }

 private:
  int buffer(int group) const { return buffers_[static_cast<std::size_t>(group)]; }
  int& fetch(int group) { return fetch_[static_cast<std::size_t>(group)]; }

  // Returns the OFFLOAD's id, which frees the group's buffer.
  int offload(int group) {
    Action action = copy_action(Kind::kOffload, group, buffer(group));
    action.after.push_back(out_.actions().back().id);
    return out_.add(std::move(action));
  }

  // The first ones come before all else, so that they are there when the gradients are.
  void fetch_next(int freed) {
    if (next_ == order_.size()) return;
    const int group = order_[next_++];
    Action action = copy_action(Kind::kFetch, group, buffer(group));
    if (freed >= 0) action.after.push_back(freed);
    fetch(group) = out_.add(std::move(action));
  }

  Draft draft_;
  Draft out_;
  std::vector<int> buffers_;
  std::vector<int> order_;       // of the groups that keep state
  std::size_t next_ = 0;         // of order_: the next to fetch
  std::vector<int> fetch_;       // by group: the FETCH's id
  std::vector<Action> updates_;  // by group
};

}  // namespace

Draft add_offload(Draft draft, const PassContext& context) {
  if (context.layout.offload == recipe::Offload::kNone) return draft;
  return Offloading(std::move(draft), context).run();
}

}  // namespace ptrain::program
