#include "core/schedule/execute.h"

#include <algorithm>
#include <optional>
#include <span>

namespace ptrain::schedule {
namespace {

double cost_of(const Cell& cell, const StageCost& cost) {
  switch (cell.work) {
    case Work::kForward:
      return cost.forward;
    case Work::kBackward:
      return cost.backward_input + cost.backward_weight;
    case Work::kBackwardInput:
      return cost.backward_input;
    case Work::kBackwardWeight:
      return cost.backward_weight;
    case Work::kShared:
      break;
  }
  return 0;
}

class Clock {
 public:
  Clock(const Schedule& schedule, const Positions& positions, const Timing& timing)
      : schedule_(schedule), positions_(positions), timing_(timing) {
    const std::size_t ranks = schedule.ranks.size();
    result_.next.resize(ranks);
    for (const auto& cells : schedule.ranks) {
      result_.spans.emplace_back(cells.size());
      waiting_.emplace_back(cells.size(), -1);
    }
    for (std::size_t rank = ranks; rank > 0; --rank) ready_.push_back(static_cast<int>(rank - 1));
  }

  Execution run() {
    while (!ready_.empty()) {
      const int rank = ready_.back();
      ready_.pop_back();
      while (advance(rank)) {
      }
    }
    return std::move(result_);
  }

 private:
  bool has_ended(const Position& cell) const {
    return static_cast<std::size_t>(cell.step) < result_.next[static_cast<std::size_t>(cell.rank)];
  }

  // When all that `cell` needs has arrived; if something has not run, the rank waits for it.
  std::optional<double> arrival(const Cell& cell, int rank) {
    double time = 0;
    for (const Position& need : positions_.needs(cell)) {
      const auto on = static_cast<std::size_t>(need.rank);
      const auto at = static_cast<std::size_t>(need.step);
      if (!has_ended(need)) {
        waiting_[on][at] = rank;
        return std::nullopt;
      }
      const double hop = need.rank == rank ? 0 : timing_.communication;
      time = std::max(time, result_.spans[on][at].end + hop);
    }
    return time;
  }

  double duration(std::span<const Cell> cells) const {
    if (cells.size() > 1 && timing_.overlapped > 0) return timing_.overlapped;
    double sum = 0;
    for (const Cell& cell : cells)
      sum += cost_of(cell, timing_.stages[static_cast<std::size_t>(cell.stage)]);
    return sum;
  }

  bool advance(int rank) {
    const auto at = static_cast<std::size_t>(rank);
    std::size_t& next = result_.next[at];
    const auto cells = together(schedule_.ranks[at], next);
    if (cells.empty()) return false;
    double start = next == 0 ? 0 : result_.spans[at][next - 1].end;
    for (const Cell& cell : cells) {
      const auto arrived = arrival(cell, rank);
      if (!arrived) return false;
      start = std::max(start, *arrived);
    }
    const double end = start + duration(cells);
    for (std::size_t i = 0; i < cells.size(); ++i, ++next) {
      result_.spans[at][next] = {start, end};
      if (waiting_[at][next] >= 0) ready_.push_back(waiting_[at][next]);
    }
    return true;
  }

  const Schedule& schedule_;
  const Positions& positions_;
  const Timing& timing_;
  Execution result_;
  std::vector<std::vector<int>> waiting_;  // the rank that waits for a cell; only one ever does
  std::vector<int> ready_;
};

}  // namespace

Timing uniform_timing(const Schedule& schedule, const Costs& costs) {
  const StageCost stage{costs.forward, costs.backward_input, costs.backward_weight};
  return {.stages = std::vector<StageCost>(static_cast<std::size_t>(schedule.num_stages), stage),
          .communication = costs.communication,
          .overlapped = costs.overlapped};
}

Execution execute(const Schedule& schedule, const Positions& positions, const Timing& timing) {
  return Clock(schedule, positions, timing).run();
}

}  // namespace ptrain::schedule
