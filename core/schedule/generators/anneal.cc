#include "core/schedule/generators/anneal.h"

#include "core/schedule/generators/timeline.h"

namespace ptrain::schedule {
namespace {

constexpr int kReach = 3;                 // places that a move goes at most
constexpr double kWeightOfOthers = 1e-3;  // of what other ranks gain, beside the makespan

// xorshift; the same on every machine.
class Dice {
 public:
  explicit Dice(std::uint32_t seed) : state_(seed * 2654435761u + 1u) {}
  std::uint32_t below(std::size_t bound) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 17;
    state_ ^= state_ << 5;
    return static_cast<std::uint32_t>((std::uint64_t{state_} * bound) >> 32);
  }
  double part() { return below(1u << 20) / static_cast<double>(1u << 20); }

 private:
  std::uint32_t state_;
};

double length(const Timeline& timeline) {
  return timeline.makespan() + kWeightOfOthers * timeline.sum_of_ends();
}

// Where a move of the cell at `from` may lead, -1 where that is beside the list.
int target(const Timeline& timeline, Timeline::Place from, Dice& dice) {
  const int distance = 1 + static_cast<int>(dice.below(kReach));
  const int to = dice.below(2) == 0 ? from.step - distance : from.step + distance;
  return to < static_cast<int>(timeline.list(from.rank).size()) ? to : -1;
}

}  // namespace

Schedule anneal(const Schedule& start, const Problem& problem, const Annealing& annealing) {
  Timeline timeline(start, problem);
  timeline.run();
  Dice dice(annealing.seed);
  Timeline best = timeline;
  double now = length(timeline);
  auto critical = timeline.critical();
  for (int i = 0; i < annealing.num_moves && best.makespan() > annealing.good_enough; ++i) {
    const Timeline::Place from = critical[dice.below(critical.size())];
    const int to = target(timeline, from, dice);
    if (to < 0) continue;
    timeline.move(from, to);
    const double left = static_cast<double>(annealing.num_moves - i) / annealing.num_moves;
    const double warmth = annealing.temperature * left * left;
    const double limit = now + warmth * dice.part();
    if (timeline.is_legal(from.rank) && timeline.run(limit) && length(timeline) <= limit) {
      now = length(timeline);
      critical = timeline.critical();
      if (timeline.makespan() < best.makespan()) best = timeline;
    } else {
      timeline.move({from.rank, to}, from.step);
    }
  }
  return best.schedule(start);
}

}  // namespace ptrain::schedule
