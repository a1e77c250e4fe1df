#include "core/schedule/generators/timeline.h"

#include <algorithm>

namespace ptrain::schedule {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

// Numbers the cells of a schedule.
class Numbers {
 public:
  explicit Numbers(const Schedule& schedule)
      : num_stages_(schedule.num_stages),
        num_micro_batches_(schedule.num_micro_batches),
        numbers_(at(4 * num_stages_ * num_micro_batches_), -1) {}
  int& of(Work work, int stage, int micro_batch) {
    const int kind = static_cast<int>(work);
    return numbers_[at((kind * num_stages_ + stage) * num_micro_batches_ + micro_batch)];
  }

 private:
  int num_stages_;
  int num_micro_batches_;
  std::vector<int> numbers_;
};

double cost_of(Work work, const Costs& costs) {
  if (work == Work::kForward) return costs.forward;
  return work == Work::kBackwardInput ? costs.backward_input : costs.backward_weight;
}

}  // namespace

Timeline::Timeline(const Schedule& schedule, const Problem& problem)
    : lists_(schedule.ranks.size()), work_(lists_.size()), cap_(problem.memory_cap) {
  Numbers numbers(schedule);
  for (int rank = 0; rank < schedule.num_ranks(); ++rank)
    for (const Cell& cell : schedule.ranks[at(rank)]) {
      const int number = static_cast<int>(facts_.size());
      numbers.of(cell.work, cell.stage, cell.micro_batch) = number;
      step_of_.push_back(static_cast<int>(lists_[at(rank)].size()));
      lists_[at(rank)].push_back(number);
      cells_.push_back(cell);
      facts_.push_back({.cost = cost_of(cell.work, problem.costs), .rank = rank});
    }
  for (std::size_t number = 0; number < cells_.size(); ++number) {
    Facts& facts = facts_[number];
    const auto& [work, stage, micro_batch, slice, copy, pair] = cells_[number];
    const bool forward = work == Work::kForward;
    if (forward && stage > 0) facts.from = numbers.of(work, stage - 1, micro_batch);
    if (work == Work::kBackwardInput) {
      facts.own = numbers.of(Work::kForward, stage, micro_batch);
      if (stage + 1 < schedule.num_stages) facts.from = numbers.of(work, stage + 1, micro_batch);
    }
    if (work == Work::kBackwardWeight)
      facts.own = numbers.of(Work::kBackwardInput, stage, micro_batch);
    if (facts.from >= 0 && facts_[at(facts.from)].rank != facts.rank)
      facts.hop = problem.costs.communication;
    work_[at(facts.rank)] += facts.cost;
    facts.change = forward ? 1 : work == Work::kBackwardWeight ? -1 : 0;
  }
  ends_.resize(facts_.size());
  next_.resize(lists_.size());
  free_at_.resize(lists_.size());
  idle_.resize(lists_.size());
}

void Timeline::move(Place from, int to) {
  auto& list = lists_[at(from.rank)];
  const auto begin = list.begin();
  if (from.step < to)
    std::rotate(begin + from.step, begin + from.step + 1, begin + to + 1);
  else
    std::rotate(begin + to, begin + from.step, begin + from.step + 1);
  for (int step = std::min(from.step, to); step <= std::max(from.step, to); ++step)
    step_of_[at(list[at(step)])] = step;
}

bool Timeline::is_legal(int rank) const {
  int held = 0;
  const auto& list = lists_[at(rank)];
  for (int step = 0; step < static_cast<int>(list.size()); ++step) {
    const Facts& facts = facts_[at(list[at(step)])];
    if (facts.own >= 0 && step_of_[at(facts.own)] > step) return false;
    held += facts.change;
    if (cap_ > 0 && held > cap_) return false;
  }
  return true;
}

bool Timeline::run(double limit) {
  std::ranges::fill(ends_, -1);
  std::ranges::fill(next_, 0);
  std::ranges::fill(free_at_, 0);
  std::ranges::fill(idle_, 0);
  for (bool any = true; any;) {
    any = false;
    for (std::size_t rank = 0; rank < lists_.size(); ++rank) {
      const auto& list = lists_[rank];
      for (std::size_t& next = next_[rank]; next < list.size(); ++next, any = true) {
        const Facts& facts = facts_[at(list[next])];
        const double sent = facts.from < 0 ? 0 : ends_[at(facts.from)];
        if (sent < 0) break;
        const double start = std::max(free_at_[rank], sent + facts.hop);
        idle_[rank] += start - free_at_[rank];
        if (idle_[rank] + work_[rank] > limit) return false;
        free_at_[rank] = start + facts.cost;
        ends_[at(list[next])] = free_at_[rank];
      }
    }
  }
  for (std::size_t rank = 0; rank < lists_.size(); ++rank)
    if (next_[rank] < lists_[rank].size()) return false;
  makespan_ = std::ranges::max(free_at_);
  sum_of_ends_ = 0;
  for (const double end : free_at_) sum_of_ends_ += end;
  return true;
}

std::vector<Timeline::Place> Timeline::critical() const {
  std::vector<Place> places;
  int rank = static_cast<int>(std::ranges::max_element(free_at_) - free_at_.begin());
  int step = static_cast<int>(lists_[at(rank)].size()) - 1;
  while (step >= 0) {
    places.push_back({rank, step});
    const Facts& facts = facts_[at(lists_[at(rank)][at(step)])];
    const double free = step == 0 ? 0 : ends_[at(lists_[at(rank)][at(step - 1)])];
    const bool waited = facts.from >= 0 && ends_[at(facts.from)] + facts.hop > free;
    if (waited) rank = facts_[at(facts.from)].rank;
    step = waited ? step_of_[at(facts.from)] : step - 1;
  }
  return places;
}

Schedule Timeline::schedule(const Schedule& like) const {
  Schedule schedule = like;
  for (std::size_t rank = 0; rank < lists_.size(); ++rank)
    for (std::size_t step = 0; step < lists_[rank].size(); ++step)
      schedule.ranks[rank][step] = cells_[at(lists_[rank][step])];
  return schedule;
}

}  // namespace ptrain::schedule
