#include "engine/data/batch.h"

#include <algorithm>

namespace ptrain::data {

std::int64_t MicroBatch::num_targets() const {
  return std::ranges::count_if(targets, [](std::int32_t target) { return target != kNoTarget; });
}

}  // namespace ptrain::data
