#pragma once

namespace ptrain::schedule {

// Chunks of stages go over the ranks there and back.
inline int zigzag_rank(int stage, int num_ranks) {
  const int along = stage % num_ranks;
  return stage / num_ranks % 2 == 0 ? along : num_ranks - 1 - along;
}

}  // namespace ptrain::schedule
