#include "core/schedule/positions.h"

namespace ptrain::schedule {
namespace {

constexpr std::size_t kKinds = 3;  // F, B or I, W

std::size_t kind_of(Work work) {
  if (work == Work::kForward) return 0;
  return work == Work::kBackwardWeight ? 2 : 1;
}

Cell moved(Cell cell, int stages, int slices) {
  cell.stage += stages;
  cell.slice += slices;
  return cell;
}

}  // namespace

Positions::Positions(const Schedule& schedule)
    : num_stages_(schedule.num_stages),
      num_micro_batches_(schedule.num_micro_batches),
      num_slices_(schedule.num_slices),
      positions_(kKinds * static_cast<std::size_t>(num_stages_) *
                 static_cast<std::size_t>(num_micro_batches_) *
                 static_cast<std::size_t>(num_slices_)) {
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    int step = -1;
    for (const Cell& cell : schedule.ranks[static_cast<std::size_t>(rank)]) {
      ++step;
      if (cell.work == Work::kShared) continue;
      Position& position = positions_[index(cell)];
      if (!position.exists()) position = {rank, step};
    }
  }
}

std::size_t Positions::index(const Cell& cell) const {
  std::size_t index = static_cast<std::size_t>(cell.stage);
  index = index * static_cast<std::size_t>(num_micro_batches_) +
          static_cast<std::size_t>(cell.micro_batch);
  index = index * static_cast<std::size_t>(num_slices_) + static_cast<std::size_t>(cell.slice);
  return index * kKinds + kind_of(cell.work);
}

Position Positions::of(const Cell& cell) const {
  const bool outside =
      cell.stage < 0 || cell.stage >= num_stages_ || cell.slice < 0 || cell.slice >= num_slices_;
  return outside ? Position{} : positions_[index(cell)];
}

void Positions::add(Needs& needs, Work work, const Cell& cell) const {
  Cell needed = cell;
  needed.work = work;
  const Position position = of(needed);
  if (position.exists()) needs.cells[static_cast<std::size_t>(needs.count++)] = position;
}

Needs Positions::needs(const Cell& cell) const {
  Needs needs;
  switch (cell.work) {
    case Work::kForward:
      add(needs, Work::kForward, moved(cell, -1, 0));
      add(needs, Work::kForward, moved(cell, 0, -1));
      break;
    case Work::kBackward:
    case Work::kBackwardInput:
      add(needs, Work::kForward, cell);
      add(needs, Work::kBackward, moved(cell, 1, 0));
      add(needs, Work::kBackward, moved(cell, 0, 1));
      break;
    case Work::kBackwardWeight:
      add(needs, Work::kBackward, cell);
      break;
    case Work::kShared:
      add(needs, Work::kForward, cell);
      break;
  }
  return needs;
}

}  // namespace ptrain::schedule
