#include "core/schedule/check.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/schedule/deadlock.h"
#include "core/schedule/execute.h"
#include "core/schedule/positions.h"

namespace ptrain::schedule {
namespace {

using Check = Status (*)(const Schedule&, const Positions&, const Position&, const Cell&);

tl::unexpected<Error> bad(const Position& at, const Cell& cell, std::string_view reason) {
  return fail(ExitCode::kUsage,
              fmt::format("rank {}, cell {} ({}): {}", at.rank, at.step + 1, to_text(cell), reason),
              "every rank runs, for each of its stages and each micro-batch, F and then B, or F, I "
              "and W");
}

std::string place_text(const Position& at) {
  return fmt::format("cell {} of rank {}", at.step + 1, at.rank);
}

Cell as(Cell cell, Work work) {
  cell.work = work;
  return cell;
}

bool in(int value, int end) { return value >= 0 && value < end; }

std::int64_t num_cells(const Schedule& schedule) {
  std::int64_t cells = 0;
  for (const auto& list : schedule.ranks) cells += std::ssize(list);
  return cells;
}

// Every stage has an F of every micro-batch and slice: where a number is too large for that, the
// tables of all places would be too.
Status check_counts(const Schedule& schedule) {
  const std::int64_t cells = num_cells(schedule);
  const std::int64_t forwards = std::int64_t{schedule.num_stages} * schedule.num_micro_batches;
  if (forwards <= cells && schedule.num_slices <= cells &&
      forwards <= kMostPlaces / schedule.num_slices)
    return {};
  Position at;
  int largest = -1;
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    int step = 0;
    for (const Cell& cell : schedule.ranks[static_cast<std::size_t>(rank)]) {
      const int number = std::max({cell.stage, cell.micro_batch, cell.slice});
      if (number > largest) at = {rank, step};
      largest = std::max(largest, number);
      ++step;
    }
  }
  return bad(
      at, cell_at(schedule, at),
      fmt::format("{} stages, {} micro-batches and {} slices need more than {} cells",
                  schedule.num_stages, schedule.num_micro_batches, schedule.num_slices, cells));
}

Status check_sizes(const Schedule& schedule) {
  const auto& [stages, micro_batches, slices, ranks] = schedule;
  if (stages < 1 || micro_batches < 1 || slices < 1 || ranks.empty())
    return fail(ExitCode::kUsage, "the schedule has no rank, stage or micro-batch",
                "give each rank the cells it runs");
  for (int rank = 0; rank < schedule.num_ranks(); ++rank)
    if (ranks[static_cast<std::size_t>(rank)].empty())
      return fail(ExitCode::kUsage, fmt::format("rank {} has nothing to do", rank),
                  "give it a stage, or leave its row out");
  return check_counts(schedule);
}

Status check_range(const Schedule& schedule, const Position& at, const Cell& cell) {
  if (!in(cell.stage, schedule.num_stages))
    return bad(at, cell, fmt::format("there are {} stages", schedule.num_stages));
  if (!in(cell.micro_batch, schedule.num_micro_batches))
    return bad(at, cell, fmt::format("there are {} micro-batches", schedule.num_micro_batches));
  if (!in(cell.slice, schedule.num_slices))
    return bad(at, cell, fmt::format("there are {} slices", schedule.num_slices));
  if (!in(cell.copy, 2)) return bad(at, cell, "there are at most 2 copies of the weights");
  return {};
}

Status check_ranges(const Schedule& schedule) {
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    Position at{rank, 0};
    for (const Cell& cell : schedule.ranks[static_cast<std::size_t>(rank)]) {
      PTRAIN_CHECK(check_range(schedule, at, cell));
      ++at.step;
    }
  }
  return {};
}

// Each stage of a copy on one rank.
Status check_stages(const Schedule& schedule) {
  for (int copy = 0; copy < num_copies(schedule); ++copy) {
    const std::vector<int> last = ranks_of_stages(schedule, copy);
    for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
      Position at{rank, 0};
      for (const Cell& cell : schedule.ranks[static_cast<std::size_t>(rank)]) {
        const int other = last[static_cast<std::size_t>(cell.stage)];
        if (cell.copy == copy && other != rank)
          return bad(at, cell, fmt::format("stage {} is on rank {} too", cell.stage, other));
        ++at.step;
      }
    }
  }
  return {};
}

Status check_once(const Schedule& schedule, const Positions& positions, const Position& at,
                  const Cell& cell) {
  const Position first = positions.of(cell);
  if (first == at) return {};
  const Cell& there = cell_at(schedule, first);
  if (there.work == cell.work) return bad(at, cell, "comes again after " + place_text(first));
  return bad(at, cell, fmt::format("{} has {} already", place_text(first), to_text(there)));
}

Status check_copy(const Schedule& schedule, const Positions& positions, const Position& at,
                  const Cell& cell) {
  const Cell other{.work = Work::kForward,
                   .stage = std::max(cell.stage - 1, 0),
                   .micro_batch = cell.micro_batch,
                   .slice = 0};
  const Position position = positions.of(other);
  if (!position.exists() || cell_at(schedule, position).copy == cell.copy) return {};
  return bad(at, cell,
             fmt::format("{} runs this micro-batch on the other copy of the weights",
                         place_text(position)));
}

// What must stand before the cell, on its own rank.
Status check_order(const Schedule& schedule, const Positions& positions, const Position& at,
                   const Cell& cell) {
  if (cell.work == Work::kForward) return {};
  const bool weights = cell.work == Work::kBackwardWeight;
  const Cell first = as(cell, weights ? Work::kBackwardInput : Work::kForward);
  const Position position = positions.of(first);
  if (!position.exists() || cell_at(schedule, position).work != first.work)
    return bad(at, cell, fmt::format("there is no {}", to_text(first)));
  if (position.step > at.step)
    return bad(at, cell, fmt::format("comes before {}, {}", to_text(first), place_text(position)));
  return {};
}

// What must be somewhere because of the cell.
Status check_complete(const Schedule&, const Positions& positions, const Position& at,
                      const Cell& cell) {
  if (cell.work == Work::kForward && !positions.of(as(cell, Work::kBackward)).exists())
    return bad(at, cell, fmt::format("there is no {} for it", to_text(as(cell, Work::kBackward))));
  if (cell.work == Work::kBackwardInput && !positions.of(as(cell, Work::kBackwardWeight)).exists())
    return bad(at, cell,
               fmt::format("there is no {} for it", to_text(as(cell, Work::kBackwardWeight))));
  return {};
}

Status check_pair(const Schedule& schedule, const Positions& positions, const Position& at,
                  const Cell& cell) {
  if (cell.pair < 0) return {};
  const auto& cells = schedule.ranks[static_cast<std::size_t>(at.rank)];
  const auto step = static_cast<std::size_t>(at.step);
  if (step > 0 && cells[step - 1].pair == cell.pair) return {};
  const auto pair = together(cells, step);
  const bool whole = pair.size() == 2 &&
                     (pair[0].work == Work::kForward) != (pair[1].work == Work::kForward) &&
                     pair[0].work != Work::kBackwardWeight && pair[1].work != Work::kBackwardWeight;
  if (!whole) return bad(at, cell, "a pair is of one F and one B or I");
  const Position second{at.rank, at.step + 1};
  for (std::size_t i = 0; i < 2; ++i)
    for (const Position& need : positions.needs(pair[i]))
      if (need == (i == 0 ? second : at))
        return bad(at, cell,
                   fmt::format("{} and {} cannot overlap, for one needs the other",
                               to_text(pair[0]), to_text(pair[1])));
  return {};
}

Status check_cells(const Schedule& schedule, const Positions& positions, Check check) {
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    Position at{rank, 0};
    for (const Cell& cell : schedule.ranks[static_cast<std::size_t>(rank)]) {
      PTRAIN_CHECK(check(schedule, positions, at, cell));
      ++at.step;
    }
  }
  return {};
}

std::vector<int> slices_of_micro_batches(const Schedule& schedule) {
  std::vector<int> slices(static_cast<std::size_t>(schedule.num_micro_batches), 1);
  for (const auto& cells : schedule.ranks)
    for (const Cell& cell : cells) {
      int& number = slices[static_cast<std::size_t>(cell.micro_batch)];
      number = std::max(number, cell.slice + 1);
    }
  return slices;
}

// F of every stage, micro-batch and slice.
Status check_forwards(const Schedule& schedule, const Positions& positions) {
  std::vector<int> ranks = ranks_of_stages(schedule);
  const std::vector<int> others = ranks_of_stages(schedule, 1);
  const std::vector<int> slices = slices_of_micro_batches(schedule);
  for (int stage = 0; stage < schedule.num_stages; ++stage) {
    int& rank = ranks[static_cast<std::size_t>(stage)];
    if (rank < 0) rank = others[static_cast<std::size_t>(stage)];
    if (rank < 0)
      return fail(ExitCode::kUsage, fmt::format("no rank works on stage {}", stage),
                  fmt::format("stages count from 0 to {}", schedule.num_stages - 1));
    for (int micro_batch = 0; micro_batch < schedule.num_micro_batches; ++micro_batch)
      for (int slice = 0; slice < slices[static_cast<std::size_t>(micro_batch)]; ++slice) {
        const Cell cell{.stage = stage, .micro_batch = micro_batch, .slice = slice};
        if (!positions.of(cell).exists())
          return fail(ExitCode::kUsage, fmt::format("rank {} lacks {}", rank, to_text(cell)),
                      "every stage runs every micro-batch once");
      }
  }
  return {};
}

}  // namespace

Status check(const Schedule& schedule) {
  PTRAIN_CHECK(check_sizes(schedule));
  PTRAIN_CHECK(check_ranges(schedule));
  PTRAIN_CHECK(check_stages(schedule));
  const Positions positions(schedule);
  for (const Check one : {check_once, check_copy, check_order, check_complete, check_pair})
    PTRAIN_CHECK(check_cells(schedule, positions, one));
  PTRAIN_CHECK(check_forwards(schedule, positions));
  return check_progress(schedule, positions,
                        execute(schedule, positions, uniform_timing(schedule, {})));
}

}  // namespace ptrain::schedule
