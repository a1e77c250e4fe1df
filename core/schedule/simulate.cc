#include "core/schedule/simulate.h"

#include <algorithm>

#include "core/schedule/deadlock.h"

namespace ptrain::schedule {
namespace {

// Stashes held now, in the three ways of counting.
struct Held {
  double weight = 0;
  double input = 0;
  double half = 0;

  void apply(Work work) {
    switch (work) {
      case Work::kForward:
        *this = {weight + 1, input + 1, half + 1};
        return;
      case Work::kBackward:
        *this = {weight - 1, input - 1, half - 1};
        return;
      case Work::kBackwardInput:
        *this = {weight, input - 1, half - 0.5};
        return;
      case Work::kBackwardWeight:
        *this = {weight - 1, input, half - 0.5};
        return;
      case Work::kShared:
        return;
    }
  }
};

void take_larger(PeakStashes& peak, const Held& held) {
  peak.weight = std::max(peak.weight, held.weight);
  peak.input = std::max(peak.input, held.input);
  peak.half = std::max(peak.half, held.half);
}

bool sends(const Cell& cell, int rank, const Positions& positions) {
  if (cell.work == Work::kBackwardWeight) return false;
  Cell receiver = cell;
  receiver.stage += cell.work == Work::kForward ? 1 : -1;
  const Position at = positions.of(receiver);
  return at.exists() && at.rank != rank;
}

double busy_of(const std::vector<Cell>& cells, const std::vector<Span>& spans) {
  double busy = 0;
  for (std::size_t i = 0; i < cells.size(); i += together(cells, i).size())
    busy += spans[i].end - spans[i].start;
  return busy;
}

double length_of(const std::vector<Span>& spans) {
  return spans.empty() ? 0 : spans.back().end - spans.front().start;
}

// The summary of all ranks from those of each.
Simulation sum_up(std::vector<RankSimulation> ranks) {
  Simulation all;
  double busy = 0;
  double first = 0;
  double last = 0;
  bool any = false;
  for (const RankSimulation& rank : ranks) {
    busy += rank.busy;
    all.busy_max = std::max(all.busy_max, rank.busy);
    all.span_max = std::max(all.span_max, length_of(rank.spans));
    if (rank.spans.empty()) continue;
    first = any ? std::min(first, rank.spans.front().start) : rank.spans.front().start;
    last = std::max(last, rank.spans.back().end);
    any = true;
  }
  all.makespan = last - first;
  const double available = all.makespan * static_cast<double>(ranks.size());
  all.bubble = available > 0 ? 1 - busy / available : 0;
  all.ranks = std::move(ranks);
  return all;
}

}  // namespace

PeakStashes peak_stashes(const std::vector<Cell>& cells) {
  Held held;
  PeakStashes peak;
  for (std::size_t i = 0; i < cells.size();) {
    const auto now = together(cells, i);
    for (const Cell& cell : now)
      if (cell.work == Work::kForward) held.apply(cell.work);
    take_larger(peak, held);
    for (const Cell& cell : now)
      if (cell.work != Work::kForward) held.apply(cell.work);
    i += now.size();
  }
  return peak;
}

Result<Simulation> simulate(const Schedule& schedule, const Timing& timing) {
  const Positions positions(schedule);
  Execution execution = execute(schedule, positions, timing);
  PTRAIN_CHECK(check_progress(schedule, positions, execution));
  std::vector<RankSimulation> ranks(schedule.ranks.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto& cells = schedule.ranks[rank];
    RankSimulation& result = ranks[rank];
    result.spans = std::move(execution.spans[rank]);
    result.busy = busy_of(cells, result.spans);
    result.peak = peak_stashes(cells);
    result.num_sends = static_cast<int>(std::ranges::count_if(
        cells, [&](const Cell& cell) { return sends(cell, static_cast<int>(rank), positions); }));
  }
  return sum_up(std::move(ranks));
}

}  // namespace ptrain::schedule
