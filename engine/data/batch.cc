#include "engine/data/batch.h"

#include <algorithm>

namespace ptrain::data {

std::int64_t MicroBatch::num_targets() const {
  return std::ranges::count_if(targets, [](std::int32_t target) { return target != kNoTarget; });
}

MicroBatch rows_of_one_document(std::int64_t rows, std::int64_t sequence) {
  MicroBatch batch;
  batch.rows = rows;
  batch.sequence = sequence;
  for (std::int64_t row = 0; row < rows; ++row) {
    batch.documents.push_back({row * sequence, (row + 1) * sequence});
    for (std::int64_t column = 0; column < sequence; ++column)
      batch.positions.push_back(static_cast<std::int32_t>(column));
  }
  return batch;
}

}  // namespace ptrain::data
