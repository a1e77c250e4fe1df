#include "core/schedule/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace ptrain::schedule {

std::string_view name_of(Word word) {
  constexpr std::array<std::string_view, 8> kNames = {
      "", "SEND_F", "RECV_F", "SEND_B", "RECV_B", "UNSHARD", "RESHARD", "REDUCE_GRAD"};
  return kNames[static_cast<std::size_t>(word)];
}

std::string to_text(const Step& step) {
  if (step.word == Word::kWork) return to_text(step.cell);
  const bool transfer = step.word < Word::kUnshard;
  return fmt::format("{}{}{}", step.cell.stage, name_of(step.word),
                     transfer ? std::to_string(step.cell.micro_batch) : "");
}

bool only_work(const Steps& steps) {
  return std::ranges::all_of(steps, [](const auto& rank) {
    return std::ranges::all_of(rank, [](const Step& step) { return step.word == Word::kWork; });
  });
}

Schedule work_of(const Steps& steps) {
  Schedule schedule;
  for (const auto& rank : steps) {
    auto& cells = schedule.ranks.emplace_back();
    for (const Step& step : rank) {
      if (step.word != Word::kWork) continue;
      const Cell& cell = step.cell;
      schedule.num_stages = std::max(schedule.num_stages, cell.stage + 1);
      schedule.num_micro_batches = std::max(schedule.num_micro_batches, cell.micro_batch + 1);
      schedule.num_slices = std::max(schedule.num_slices, cell.slice + 1);
      cells.push_back(cell);
    }
  }
  return schedule;
}

}  // namespace ptrain::schedule
