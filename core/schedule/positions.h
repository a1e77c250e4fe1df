#pragma once

#include <array>
#include <vector>

#include "core/schedule/schedule.h"

namespace ptrain::schedule {

// Where a cell stands: the number of its rank and that in the rank's list. rank -1: nowhere.
struct Position {
  int rank = -1;
  int step = -1;
  bool exists() const { return rank >= 0; }
  bool operator==(const Position&) const = default;
};

// The cell that stands there.
inline const Cell& cell_at(const Schedule& schedule, const Position& at) {
  return schedule.ranks[static_cast<std::size_t>(at.rank)][static_cast<std::size_t>(at.step)];
}

// What must have ended before a cell may start; those that do not exist are left out.
struct Needs {
  std::array<Position, 3> cells;
  int count = 0;
  const Position* begin() const { return cells.data(); }
  const Position* end() const { return cells.data() + count; }
};

// Finds the cells of a schedule by what they do. The cells must be in the schedule's range; of two
// alike it knows the first.
class Positions {
 public:
  explicit Positions(const Schedule& schedule);

  // I and B share a place: a stage does one of them. Not of S, which many ranks do.
  Position of(const Cell& cell) const;

  // F after that of the stage before and of the slice before; B or I after its own F, that of the
  // stage behind and of the slice behind; W after its own I; S after the F of its stage.
  Needs needs(const Cell& cell) const;

 private:
  std::size_t index(const Cell& cell) const;
  void add(Needs& needs, Work work, const Cell& cell) const;

  int num_stages_;
  int num_micro_batches_;
  int num_slices_;
  std::vector<Position> positions_;
};

}  // namespace ptrain::schedule
