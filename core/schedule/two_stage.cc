#include "core/schedule/two_stage.h"

namespace ptrain::schedule {
namespace {

std::vector<Cell> weights_last(const std::vector<Cell>& cells) {
  std::vector<Cell> first;
  std::vector<Cell> weights;
  for (Cell cell : cells) {
    const bool has_weights = cell.work == Work::kBackward || cell.work == Work::kBackwardWeight;
    if (has_weights) {
      weights.push_back(cell);
      weights.back().work = Work::kBackwardWeight;
      weights.back().pair = -1;
    }
    if (cell.work == Work::kBackwardWeight) continue;
    if (has_weights) cell.work = Work::kBackwardInput;
    first.push_back(cell);
  }
  first.insert(first.end(), weights.begin(), weights.end());
  return first;
}

}  // namespace

Schedule weights_last(const Schedule& schedule) {
  Schedule result = schedule;
  for (auto& cells : result.ranks) cells = weights_last(cells);
  return result;
}

}  // namespace ptrain::schedule
