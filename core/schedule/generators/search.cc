#include "core/schedule/generators/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/schedule/generators/anneal.h"
#include "core/schedule/generators/dispatch.h"
#include "core/schedule/generators/refuse.h"
#include "core/schedule/generators/timeline.h"
#include "core/schedule/generators/zigzag.h"

namespace ptrain::schedule {
namespace {

constexpr int kSteps = 6;             // of the limits that are tried, at most
constexpr int kCellsTried = 6000000;  // over all limits
constexpr int kMostCells = 1000000;   // that are searched at all
constexpr std::uint32_t kRounds = 4;
constexpr int kMoves = 120000;         // of a round, at most
constexpr int kCellsMoved = 48000000;  // of a round, each cell counted in each move
constexpr double kWarmth = 1.4;        // at first, in cells of mean cost: passes over one slot

int num_cells(const Problem& problem) {
  return 3 * problem.num_ranks * problem.num_virtual * problem.num_micro_batches;
}

// The shortest order that was met.
class Shortest {
 public:
  explicit Shortest(const Problem& problem) : problem_(problem) {}

  void offer(const Schedule& schedule) {
    Timeline timeline(schedule, problem_);
    if (!is_legal(timeline) || !timeline.run()) return;
    if (schedule_ && timeline.makespan() >= makespan_) return;
    schedule_ = schedule;
    makespan_ = timeline.makespan();
  }
  const Schedule& schedule() const { return *schedule_; }

 private:
  bool is_legal(const Timeline& timeline) const {
    for (int rank = 0; rank < problem_.num_ranks; ++rank)
      if (!timeline.is_legal(rank)) return false;
    return true;
  }

  const Problem& problem_;
  std::optional<Schedule> schedule_;
  double makespan_ = 0;
};

// Limits on the forwards of the first stages, falling or rising evenly from rank to rank.
void offer_dispatched(const Problem& problem, Shortest& shortest) {
  int steps = kSteps;
  while (steps > 1 && 3 * steps * steps > kCellsTried / num_cells(problem)) --steps;
  DispatchRules rules;
  rules.cap = static_cast<int>(problem.memory_cap);
  for (int stage = 0; stage < problem.num_ranks * problem.num_virtual; ++stage)
    rules.rank_of_stage.push_back(zigzag_rank(stage, problem.num_ranks));
  const int most = rules.cap - (problem.num_virtual - 1);  // leaves room for the other stage
  const int last = std::max(1, problem.num_ranks - 1);
  const auto limit = [=](int step) {
    return std::max(1.0, most * static_cast<double>(step) / steps);
  };
  for (const auto preference :
       {Preference::kOldestBackward, Preference::kDeepestBackward, Preference::kDeepest})
    for (int first = 1; first <= steps; ++first)
      for (int other = 1; other <= steps; ++other) {
        rules.preference = preference;
        rules.first_stage_cap.clear();
        for (int rank = 0; rank < problem.num_ranks; ++rank)
          rules.first_stage_cap.push_back(static_cast<int>(
              std::lround(limit(first) + (limit(other) - limit(first)) * rank / last)));
        shortest.offer(dispatch(problem, rules));
      }
}

// No order is shorter: the last rank waits for the first input, then has all its work to do.
double least_makespan(const Problem& problem) {
  const Costs& costs = problem.costs;
  const double work = costs.forward + costs.backward_input + costs.backward_weight;
  return (problem.num_ranks - 1) * (costs.forward + costs.communication) +
         problem.num_virtual * problem.num_micro_batches * work;
}

void offer_annealed(const Problem& problem, Shortest& shortest) {
  const Costs& costs = problem.costs;
  const Schedule start = shortest.schedule();
  Annealing annealing;
  annealing.num_moves = std::min(kMoves, kCellsMoved / num_cells(problem));
  annealing.temperature =
      kWarmth * (costs.forward + costs.backward_input + costs.backward_weight) / 3;
  annealing.good_enough = least_makespan(problem);
  for (annealing.seed = 1; annealing.seed <= kRounds; ++annealing.seed)
    shortest.offer(anneal(start, problem, annealing));
}

}  // namespace

Result<Schedule> search(std::string_view name, const Problem& problem,
                        const std::vector<Schedule>& known) {
  Problem capped = problem;
  const int most = problem.num_virtual * problem.num_micro_batches;
  capped.memory_cap =
      problem.memory_cap == 0 ? most : std::min<double>(most, std::floor(problem.memory_cap));
  if (capped.memory_cap < problem.num_virtual)
    return refuse(name, fmt::format("cannot run under a memory cap of {}", problem.memory_cap),
                  fmt::format("a cap of {}", problem.num_virtual));
  if (num_cells(problem) > kMostCells)
    return refuse(name, fmt::format("would search {} cells", num_cells(problem)),
                  fmt::format("{} cells, of 3 for each stage and micro-batch", kMostCells));
  Shortest shortest(capped);
  for (const Schedule& schedule : known) shortest.offer(schedule);
  offer_dispatched(capped, shortest);
  offer_annealed(capped, shortest);
  return shortest.schedule();
}

}  // namespace ptrain::schedule
