#include "core/schedule/schedule.h"

#include <fmt/format.h>

#include <algorithm>

namespace ptrain::schedule {

char letter_of(Work work) { return "FBIWS"[static_cast<std::size_t>(work)]; }

std::string to_text(const Cell& cell) {
  std::string text = fmt::format("{}{}{}", cell.stage, letter_of(cell.work), cell.micro_batch);
  if (cell.slice != 0 || cell.copy != 0) text += fmt::format(".{}", cell.slice);
  if (cell.copy != 0) text += fmt::format("*{}", cell.copy);
  return text;
}

std::span<const Cell> together(const std::vector<Cell>& cells, std::size_t first) {
  std::size_t last = std::min(first + 1, cells.size());
  while (last < cells.size() && cells[last].pair >= 0 && cells[last].pair == cells[first].pair)
    ++last;
  return std::span(cells).subspan(first, last - first);
}

int num_copies(const Schedule& schedule) {
  int copies = 1;
  for (const auto& cells : schedule.ranks)
    for (const Cell& cell : cells) copies = std::max(copies, cell.copy + 1);
  return copies;
}

std::vector<int> ranks_of_stages(const Schedule& schedule, int copy) {
  std::vector<int> ranks(static_cast<std::size_t>(schedule.num_stages), -1);
  for (int rank = 0; rank < schedule.num_ranks(); ++rank)
    for (const Cell& cell : schedule.ranks[static_cast<std::size_t>(rank)])
      if (cell.copy == copy) ranks[static_cast<std::size_t>(cell.stage)] = rank;
  return ranks;
}

}  // namespace ptrain::schedule
