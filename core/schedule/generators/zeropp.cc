#include <algorithm>

#include "core/schedule/generators/generators.h"
#include "core/schedule/generators/lists.h"

namespace ptrain::schedule {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

// One rank's list. A unit of micro-batches goes breadth-first through the rank's stages, so that
// each stage's parameters are gathered once for the forwards and once for the backwards of a unit.
class Writer {
 public:
  Writer(const Problem& problem, int rank) : problem_(problem), rank_(rank) {}

  // Between this unit's backwards and the next one's, a rank waits twice: until the next forwards
  // come, the longer the further down it is, and until their backwards do, the other way round. The
  // weight gradients are spread accordingly.
  std::vector<Cell> list(int unit) {
    for (int first = 0; first < problem_.num_micro_batches; first += unit) {
      const int count = std::min(unit, problem_.num_micro_batches - first);
      for (int chunk = 0; chunk < problem_.num_virtual; ++chunk)
        put(Work::kForward, chunk, first, count);
      put_weights(weights_.size());
      for (int chunk = problem_.num_virtual - 1; chunk >= 0; --chunk)
        put(Work::kBackwardInput, chunk, first, count);
      put_weights(weights_.size() * at(rank_) / at(std::max(1, problem_.num_ranks - 1)));
    }
    put_weights(weights_.size());
    return std::move(cells_);
  }

 private:
  void put(Work work, int chunk, int first, int count) {
    for (int i = 0; i < count; ++i) {
      Cell cell{
          .work = work, .stage = chunk * problem_.num_ranks + rank_, .micro_batch = first + i};
      cells_.push_back(cell);
      cell.work = Work::kBackwardWeight;
      if (work == Work::kBackwardInput) weights_.push_back(cell);
    }
  }
  void put_weights(std::size_t count) {
    const auto end = weights_.begin() + static_cast<long>(count);
    cells_.insert(cells_.end(), weights_.begin(), end);
    weights_.erase(weights_.begin(), end);
  }

  const Problem& problem_;
  int rank_;
  std::vector<Cell> cells_;
  std::vector<Cell> weights_;  // put off, in the order of their backwards
};

}  // namespace

Result<Schedule> zeropp(const Problem& problem) {
  Schedule schedule = empty_schedule(problem);
  const int unit = problem.group > 0 ? problem.group : problem.num_ranks;
  for (int rank = 0; rank < problem.num_ranks; ++rank)
    schedule.ranks[at(rank)] = Writer(problem, rank).list(unit);
  return schedule;
}

}  // namespace ptrain::schedule
