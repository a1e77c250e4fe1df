#include "launcher/plan/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>

namespace ptrain::plan {

namespace {

using program::Action;
using program::Lane;
using program::Program;

// What the members of one collective have in common: everything but the id and what it waits for.
std::string collective_key(const Action& action) {
  Action common = action;
  common.id = 0;
  common.after.clear();
  return program::to_text(common);
}

bool is_copy(const Action& action) {
  return action.lane == Lane::kCopyOut || action.lane == Lane::kCopyIn;
}

bool is_receive(const Action& action) {
  return action.kind == program::Kind::kReceiveForward ||
         action.kind == program::Kind::kReceiveBackward;
}

bool is_send(const Action& action) { return action.lane == Lane::kTransfer && !is_receive(action); }

// What passes from one program to another in one direction.
struct Ends {
  int sender = 0, receiver = 0;
  bool forward = true;
  auto operator<=>(const Ends&) const = default;
};

struct Channel {
  std::vector<double> sent_s;                  // when each has arrived
  std::vector<std::pair<int, double>> posted;  // the RECV of each: id, since when
  std::size_t num_received = 0;
};

Ends ends_of(const Action& action, int p) {
  using program::Kind;
  const bool forward = action.kind == Kind::kSendForward || action.kind == Kind::kReceiveForward;
  const std::string peer(action.attribute(is_receive(action) ? "from" : "to"));
  const int other = std::atoi(peer.c_str());
  return is_receive(action) ? Ends{other, p, forward} : Ends{p, other, forward};
}

struct Meeting {
  std::map<int, int> arrived;  // program index -> action id
  double ready_s = 0;
};

class Simulator {
 public:
  Simulator(std::span<const Program> programs, const SimulateOptions& options)
      : programs_(programs), options_(options), ranks_(programs.size()) {
    for (std::size_t p = 0; p < programs.size(); ++p) prepare(static_cast<int>(p));
  }

  Result<Timeline> run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (int p = 0; p < static_cast<int>(programs_.size()); ++p) moved = advance(p) || moved;
    }
    for (std::size_t p = 0; p < programs_.size(); ++p)
      if (ranks_[p].num_done != programs_[p].actions.size()) return stuck(static_cast<int>(p));
    return finish();
  }

 private:
  struct RankState {
    std::vector<std::vector<int>> queues;  // ids, one queue a lane
    std::vector<std::size_t> next;         // by queue
    std::vector<double> free_s;            // by queue
    std::vector<bool> done, waiting;       // by id
    std::size_t num_done = 0;
    std::map<std::string, int> occurrences;
    RankTimeline timeline;
  };

  std::size_t queue_of(const Action& action) const {
    if (is_copy(action)) return static_cast<std::size_t>(Lane::kCopyOut);
    return options_.serial ? 0 : static_cast<std::size_t>(action.lane);
  }

  void prepare(int p) {
    RankState& rank = ranks_[static_cast<std::size_t>(p)];
    const auto& actions = programs_[static_cast<std::size_t>(p)].actions;
    rank.queues.resize(kNumLanes);
    rank.next.resize(kNumLanes);
    rank.free_s.resize(kNumLanes);
    rank.done.resize(actions.size());
    rank.waiting.resize(actions.size());
    rank.timeline.actions.resize(actions.size());
    for (const Action& action : actions) rank.queues[queue_of(action)].push_back(action.id);
  }

  // Starts all that can start on one rank; true when anything did.
  bool advance(int p) {
    RankState& rank = ranks_[static_cast<std::size_t>(p)];
    bool any = false;
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t q = 0; q < rank.queues.size(); ++q) {
        if (rank.next[q] == rank.queues[q].size()) continue;
        moved = try_start(p, q) || moved;
      }
      any = any || moved;
    }
    return any;
  }

  bool try_start(int p, std::size_t q) {
    RankState& rank = ranks_[static_cast<std::size_t>(p)];
    const auto id = static_cast<std::size_t>(rank.queues[q][rank.next[q]]);
    if (rank.waiting[id]) return false;
    const Action& action = programs_[static_cast<std::size_t>(p)].actions[id];
    double ready = rank.free_s[q];
    for (const int before : action.after) {
      if (!rank.done[static_cast<std::size_t>(before)]) return false;
      ready = std::max(ready, rank.timeline.actions[static_cast<std::size_t>(before)].end_s);
    }
    if (is_receive(action)) {
      rank.next[q] += 1;
      post(p, action, ready);
      return true;
    }
    const auto members = options_.members ? options_.members(action, p) : std::vector<int>{};
    if (members.size() < 2) {
      complete(p, action, ready, ready + options_.seconds(action, p));
      return true;
    }
    meet(p, action, members, ready);
    return true;
  }

  void post(int p, const Action& action, double since) {
    const Ends ends = ends_of(action, p);
    Channel& channel = channels_[ends];
    channel.posted.emplace_back(action.id, since);
    receive(ends, channel);
  }

  void arrive(int p, const Action& action, double at) {
    const Ends ends = ends_of(action, p);
    Channel& channel = channels_[ends];
    channel.sent_s.push_back(at);
    receive(ends, channel);
  }

  void receive(const Ends& ends, Channel& channel) {
    const std::size_t next = channel.num_received;
    if (next == channel.sent_s.size() || next == channel.posted.size()) return;
    channel.num_received += 1;
    const auto [id, since] = channel.posted[next];
    RankState& rank = ranks_[static_cast<std::size_t>(ends.receiver)];
    rank.timeline.actions[static_cast<std::size_t>(id)] = {since,
                                                           std::max(since, channel.sent_s[next])};
    rank.done[static_cast<std::size_t>(id)] = true;
    rank.num_done += 1;
  }

  void meet(int p, const Action& action, const std::vector<int>& members, double ready) {
    RankState& rank = ranks_[static_cast<std::size_t>(p)];
    rank.waiting[static_cast<std::size_t>(action.id)] = true;
    const auto key = collective_key(action);
    const auto name = fmt::format("{} #{} of {}", key, rank.occurrences[key]++, members.front());
    Meeting& meeting = meetings_[name];
    meeting.arrived[p] = action.id;
    meeting.ready_s = std::max(meeting.ready_s, ready);
    if (meeting.arrived.size() < members.size()) return;
    double seconds = 0;
    for (const auto& [index, id] : meeting.arrived)
      seconds = std::max(seconds, options_.seconds(action_of(index, id), index));
    for (const auto& [index, id] : meeting.arrived)
      complete(index, action_of(index, id), meeting.ready_s, meeting.ready_s + seconds);
    meetings_.erase(name);
  }

  const Action& action_of(int index, int id) const {
    return programs_[static_cast<std::size_t>(index)].actions[static_cast<std::size_t>(id)];
  }

  void complete(int p, const Action& action, double start, double end) {
    RankState& rank = ranks_[static_cast<std::size_t>(p)];
    const auto id = static_cast<std::size_t>(action.id);
    const std::size_t q = queue_of(action);
    rank.timeline.actions[id] = {start, end};
    rank.timeline.busy_s[static_cast<std::size_t>(action.lane)] += end - start;
    rank.free_s[q] = end;
    rank.done[id] = true;
    rank.next[q] += 1;
    rank.num_done += 1;
    if (is_send(action)) arrive(p, action, end);
  }

  tl::unexpected<Error> stuck(int p) const {
    const RankState& rank = ranks_[static_cast<std::size_t>(p)];
    for (std::size_t q = 0; q < rank.queues.size(); ++q)
      if (rank.next[q] < rank.queues[q].size())
        return fail(ExitCode::kBug,
                    fmt::format("the program of rank {} cannot end: {} never starts",
                                programs_[static_cast<std::size_t>(p)].rank,
                                to_text(action_of(p, rank.queues[q][rank.next[q]]))));
    return fail(ExitCode::kBug, "a program cannot end");
  }

  bool takes_core(const Action& action) const {
    return options_.serial ? !is_copy(action) && !is_receive(action)
                           : action.lane == Lane::kCompute;
  }

  // The time in which the core idles, charged to the lane whose action ends last before it goes on,
  // and that in which it does not compute but communicate.
  void expose(std::size_t p, double step_s) {
    RankTimeline& timeline = ranks_[p].timeline;
    for (const Action& action : programs_[p].actions) {
      const Interval& interval = timeline.actions[static_cast<std::size_t>(action.id)];
      if (takes_core(action) && action.lane != Lane::kCompute)
        timeline.exposed_s[static_cast<std::size_t>(action.lane)] +=
            interval.end_s - interval.start_s;
    }
    std::vector<std::pair<Interval, Lane>> by_end;
    std::vector<Interval> compute;
    for (const Action& action : programs_[p].actions) {
      const Interval& interval = timeline.actions[static_cast<std::size_t>(action.id)];
      if (takes_core(action))
        compute.push_back(interval);
      else
        by_end.emplace_back(interval, action.lane);
    }
    compute.push_back({step_s, step_s});
    std::sort(by_end.begin(), by_end.end(), [](const auto& a, const auto& b) {
      return std::pair(a.first.end_s, a.second) < std::pair(b.first.end_s, b.second);
    });
    double busy_until = 0;
    std::size_t other = 0;
    for (const Interval& next : compute) {
      while (other < by_end.size() && by_end[other].first.end_s <= next.start_s) ++other;
      if (next.start_s > busy_until && other > 0)
        timeline.exposed_s[static_cast<std::size_t>(by_end[other - 1].second)] +=
            next.start_s - busy_until;
      busy_until = std::max(busy_until, next.end_s);
    }
  }

  Timeline finish() {
    Timeline out;
    for (const RankState& rank : ranks_)
      for (const Interval& interval : rank.timeline.actions)
        out.step_s = std::max(out.step_s, interval.end_s);
    for (std::size_t p = 0; p < ranks_.size(); ++p) {
      expose(p, out.step_s);
      const double busy = ranks_[p].timeline.busy_s[static_cast<std::size_t>(Lane::kCompute)];
      if (out.step_s > 0)
        out.bubble += (1 - busy / out.step_s) / static_cast<double>(ranks_.size());
      out.ranks.push_back(std::move(ranks_[p].timeline));
    }
    return out;
  }

  std::span<const Program> programs_;
  const SimulateOptions& options_;
  std::vector<RankState> ranks_;
  std::map<std::string, Meeting> meetings_;
  std::map<Ends, Channel> channels_;
};

}  // namespace

Result<Timeline> simulate(std::span<const program::Program> programs,
                          const SimulateOptions& options) {
  return Simulator(programs, options).run();
}

}  // namespace ptrain::plan
