#include <algorithm>

#include "core/program/passes/passes.h"

namespace ptrain::program {
namespace {

// Neighbouring actions of one layer: the groups they read are gathered once for all of them.
struct Visit {
  int layer = 0;
  std::size_t begin = 0;  // positions of its first action and behind its last
  std::size_t end = 0;
  std::span<const int> groups = {};
};

// The actions of a layer read all of its groups or none.
std::vector<Visit> visits_of(const std::vector<Action>& actions,
                             const model::Architecture& architecture) {
  std::vector<Visit> visits;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const int layer = layer_of(actions[i]);
    if (visits.empty() || visits.back().layer != layer) visits.push_back({layer, i, i});
    visits.back().end = i + 1;
    const auto groups = groups_read(actions[i], architecture);
    if (!groups.empty()) visits.back().groups = groups;
  }
  return visits;
}

Action gather_action(Kind kind, int group) {
  Action action;
  action.lane = Lane::kGather;
  action.kind = kind;
  action.group = group;
  return action;
}

class Gathering {
 public:
  Gathering(Draft draft, const PassContext& context)
      : context_(context),
        draft_(std::move(draft)),
        out_(draft_.successor()),
        visits_(visits_of(draft_.actions(), context.architecture)),
        last_needed_(static_cast<std::size_t>(context.architecture.num_groups()), -1),
        unshard_(last_needed_.size(), kClosed) {
    for (std::size_t group = 0; group < unshard_.size(); ++group)
      if (mesh::num_shards_of(context.architecture.groups[group], context.layout) == 1)
        unshard_[group] = kWhole;
  }

  Draft run() {
    if (context_.layout.zero < 3) hold_until_last_use();
    int window_end = 0;  // visits before it are in the window: their groups are open or about to be
    for (int v = 0; v < num_visits(); ++v) {
      const int new_end = std::min(v + 1 + context_.layout.prefetch, num_visits());
      for (int ahead = window_end; ahead < new_end; ++ahead) need(ahead);
      if (v > 0) release_after(v - 1);
      for (int ahead = window_end; ahead < new_end; ++ahead) open(ahead);
      window_end = new_end;
      run_visit(v);
    }
    if (num_visits() > 0) release_after(num_visits() - 1);
    return std::move(out_);
  }

 private:
  static constexpr int kWhole = -3;   // for good: it has no shards
  static constexpr int kClosed = -2;  // no whole buffer
  static constexpr int kWaited = -1;  // open, and compute has waited for it; else the UNSHARD's id

  int num_visits() const { return static_cast<int>(visits_.size()); }
  const Visit& visit(int v) const { return visits_[static_cast<std::size_t>(v)]; }
  std::span<const int> groups_of(int v) const { return visit(v).groups; }
  int& unshard(int group) { return unshard_[static_cast<std::size_t>(group)]; }
  int& last_needed(int group) { return last_needed_[static_cast<std::size_t>(group)]; }

  void need(int v) {
    for (int group : groups_of(v)) last_needed(group) = std::max(last_needed(group), v);
  }

  void hold_until_last_use() {
    for (int v = 0; v < num_visits(); ++v) need(v);
  }

  void open(int v) {
    for (int group : groups_of(v)) {
      if (unshard(group) != kClosed) continue;
      unshard(group) = out_.add(gather_action(Kind::kUnshard, group));
    }
  }

  void run_visit(int v) {
    for (std::size_t i = visit(v).begin; i < visit(v).end; ++i) {
      Action& action = draft_.actions()[i];
      for (int group : groups_read(action, context_.architecture)) {
        if (unshard(group) == kWaited || unshard(group) == kWhole) continue;
        action.after.push_back(unshard(group));
        unshard(group) = kWaited;
      }
      out_.keep(std::move(action));
    }
  }

  // Gives back what no visit of the window needs again. RESHARD waits for the use, and the next
  // UNSHARD for RESHARD by the order of their lane: no gather runs further ahead than the window.
  void release_after(int v) {
    const int use = out_.actions().back().id;
    for (int group : groups_of(v)) {
      if (last_needed(group) > v || unshard(group) == kWhole) continue;
      Action reshard = gather_action(Kind::kReshard, group);
      reshard.after.push_back(use);
      out_.add(std::move(reshard));
      unshard(group) = kClosed;
    }
  }

  const PassContext& context_;
  Draft draft_;
  Draft out_;
  std::vector<Visit> visits_;
  std::vector<int> last_needed_;  // by group: the last visit known to read it
  std::vector<int> unshard_;      // by group
};

}  // namespace

Draft add_gathers(Draft draft, const PassContext& context) {
  if (context.layout.num_shards() == 1) return draft;
  return Gathering(std::move(draft), context).run();
}

}  // namespace ptrain::program
