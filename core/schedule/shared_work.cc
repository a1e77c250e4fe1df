#include "core/schedule/shared_work.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/schedule/positions.h"

namespace ptrain::schedule {
namespace {

// In any unit: what S takes beside them decides nothing but who waits for whom.
double cost_of(Work work) {
  constexpr double kShare = 0.25;
  if (work == Work::kShared) return kShare;
  return work == Work::kBackward ? 2 : 1;
}

bool goes_back(Work work) { return work == Work::kBackward || work == Work::kBackwardInput; }

bool trains(const Schedule& schedule) {
  return std::ranges::any_of(schedule.ranks, [](const auto& cells) {
    return std::ranges::any_of(cells, [](const Cell& cell) { return goes_back(cell.work); });
  });
}

class Sharing {
 public:
  explicit Sharing(const Schedule& schedule)
      : schedule_(schedule),
        positions_(schedule),
        trains_(trains(schedule)),
        last_rank_(static_cast<std::size_t>(ranks_of_stages(schedule).back())),
        ends_(schedule.ranks.size()),
        free_(schedule.ranks.size(), 0),
        out_(schedule) {
    for (auto& cells : out_.ranks) cells.clear();
  }

  Schedule run() {
    while (const auto next = first_to_start()) start(*next);
    return std::move(out_);
  }

 private:
  struct Start {
    std::size_t rank = 0;
    double time = 0;
    bool meets = false;
  };

  // The first that has not started.
  const Cell& cell_of(std::size_t rank) const { return schedule_.ranks[rank][ends_[rank].size()]; }

  // The next cell of the rank, all that it needs having been started.
  std::optional<Start> next_of(std::size_t rank) const {
    const auto& cells = schedule_.ranks[rank];
    if (ends_[rank].size() == cells.size()) return std::nullopt;
    const Cell& cell = cell_of(rank);
    double time = free_[rank];
    for (const Position& need : positions_.needs(cell)) {
      const auto& ends = ends_[static_cast<std::size_t>(need.rank)];
      if (static_cast<std::size_t>(need.step) >= ends.size()) return std::nullopt;
      time = std::max(time, ends[static_cast<std::size_t>(need.step)]);
    }
    return Start{rank, time, meets(cell)};
  }

  // Of two at the same time the last stage's rank, whose cell others may have to meet.
  std::optional<Start> first_to_start() const {
    std::optional<Start> first = next_of(last_rank_);
    const std::optional<Start> meeting = first && first->meets ? first : std::nullopt;
    for (std::size_t rank = 0; rank < ends_.size(); ++rank) {
      const auto next = rank == last_rank_ ? std::nullopt : next_of(rank);
      if (!next || (meeting && gives_way(*next, *meeting))) continue;
      if (!first || next->time < first->time) first = next;
    }
    return first;
  }

  // Where one rank idles shorter until all meet than all would wait for its cell.
  bool gives_way(const Start& next, const Start& meeting) const {
    const double end = next.time + cost_of(cell_of(next.rank).work);
    return next.time < meeting.time && meeting.time - next.time <= end - meeting.time;
  }

  void start(const Start& next) {
    const Cell& cell = cell_of(next.rank);
    const double begin = next.meets ? meet(next, cell) : next.time;
    out_.ranks[next.rank].push_back(cell);
    free_[next.rank] = begin + cost_of(cell.work);
    ends_[next.rank].push_back(free_[next.rank]);
  }

  // When all have done their share.
  double meet(const Start& next, Cell cell) {
    const double end =
        std::max(next.time, *std::ranges::max_element(free_)) + cost_of(Work::kShared);
    std::ranges::fill(free_, end);
    cell.work = Work::kShared;
    for (std::size_t rank = 0; rank < ends_.size(); ++rank)
      if (rank != next.rank) out_.ranks[rank].push_back(cell);
    return end;
  }

  bool meets(const Cell& cell) const {
    return cell.stage == schedule_.num_stages - 1 &&
           (trains_ ? goes_back(cell.work) : cell.work == Work::kForward);
  }

  const Schedule& schedule_;
  Positions positions_;
  bool trains_;
  std::size_t last_rank_;                  // of the last stage
  std::vector<std::vector<double>> ends_;  // by rank: of its cells that have started
  std::vector<double> free_;               // by rank
  Schedule out_;
};

}  // namespace

Schedule add_shared_work(const Schedule& schedule) { return Sharing(schedule).run(); }

}  // namespace ptrain::schedule
