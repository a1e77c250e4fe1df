#pragma once

#include <cstdint>
#include <vector>

#include "core/dcp/item.h"

namespace ptrain::dcp {

using Sizes = std::vector<std::int64_t>;

// A rectangular part of a tensor, one entry a dim.
struct Box {
  Sizes offsets;
  Sizes sizes;
  bool operator==(const Box&) const = default;
};

// The number of elements; 1 for no dims. The product must fit (metadata checks it).
std::int64_t volume(const Sizes& sizes);

// The flat elements [begin, end) of a tensor as boxes in flat order, none above `max_elements` (0:
// no limit). Each box is contiguous in the flattened tensor, so its data is one run of memory.
std::vector<Box> boxes_of_run(const Sizes& shape, std::int64_t begin, std::int64_t end,
                              std::int64_t max_elements = 0);

// `count` consecutive elements: from element `source` of a storage to element `target` of a run.
struct Copy {
  std::int64_t source = 0;
  std::int64_t target = 0;
  std::int64_t count = 0;
  bool operator==(const Copy&) const = default;
};

// What the run [begin, end) of a tensor of this shape takes from the stored chunk at `offsets`, in
// flat order.
struct Run { std::int64_t begin = 0; std::int64_t end = 0; };
std::vector<Copy> overlap(const Sizes& shape, const Run& run, const Sizes& offsets,
                          const StoredTensor& stored);

}  // namespace ptrain::dcp
