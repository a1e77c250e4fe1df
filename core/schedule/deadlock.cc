#include "core/schedule/deadlock.h"

#include <fmt/format.h>

#include <algorithm>

namespace ptrain::schedule {
namespace {

bool has_run(const Position& position, const Execution& execution) {
  return static_cast<std::size_t>(position.step) <
         execution.next[static_cast<std::size_t>(position.rank)];
}

struct Wait {
  Position at;
  Position need;
};

// What the cell where a rank stands waits for.
Wait wait_of(int rank, const Schedule& schedule, const Positions& positions,
             const Execution& execution) {
  const std::size_t next = execution.next[static_cast<std::size_t>(rank)];
  int step = static_cast<int>(next);
  for (const Cell& cell : together(schedule.ranks[static_cast<std::size_t>(rank)], next)) {
    for (const Position& need : positions.needs(cell))
      if (!has_run(need, execution)) return {{rank, step}, need};
    ++step;
  }
  return {};
}

std::string to_text(const Wait& wait, const Schedule& schedule) {
  return fmt::format("rank {} at {} (cell {}) waits for {} of rank {}", wait.at.rank,
                     to_text(cell_at(schedule, wait.at)), wait.at.step + 1,
                     to_text(cell_at(schedule, wait.need)), wait.need.rank);
}

// From a rank that waits to the one it waits for, until a rank comes again.
std::vector<Wait> ring_from(int rank, const Schedule& schedule, const Positions& positions,
                            const Execution& execution) {
  std::vector<Wait> path;
  while (std::ranges::none_of(path, [&](const Wait& wait) { return wait.at.rank == rank; })) {
    path.push_back(wait_of(rank, schedule, positions, execution));
    rank = path.back().need.rank;
  }
  const auto first =
      std::ranges::find_if(path, [&](const Wait& wait) { return wait.at.rank == rank; });
  path.erase(path.begin(), first);
  return path;
}

}  // namespace

Status check_progress(const Schedule& schedule, const Positions& positions,
                      const Execution& execution) {
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    if (execution.next[at] == schedule.ranks[at].size()) continue;
    std::string text;
    for (const Wait& wait : ring_from(rank, schedule, positions, execution)) {
      text += text.empty() ? "the schedule hangs: " : ", ";
      text += to_text(wait, schedule);
    }
    return fail(ExitCode::kUsage, text, "reorder one of these ranks");
  }
  return {};
}

}  // namespace ptrain::schedule
