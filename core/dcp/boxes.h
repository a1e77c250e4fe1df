#pragma once

#include <cstdint>
#include <optional>
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

// The common part of two boxes of one tensor, or none.
std::optional<Box> intersection(const Box& a, const Box& b);

// A box as the part of a tensor that begins at `origin` sees it.
Box relative_to(const Sizes& origin, Box box);

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
struct Run {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool operator==(const Run&) const = default;
};
std::vector<Copy> overlap(const Sizes& shape, const Run& run, const Sizes& offsets,
                          const StoredTensor& stored);

// How the elements of `part` lie in the storage of a chunk, whose box holds it.
StoredTensor stored_part(StoredTensor stored, const Box& chunk, const Box& part);

// A part of a run that lies in one piece in the stored tensor too: its elements there, and the
// place of the first in the run.
struct Piece {
  Run stored;
  std::int64_t target = 0;
  bool operator==(const Piece&) const = default;
};

// The run [begin, end) of a tensor as wanted, where the stored tensor has other rows in its place:
// of every `head_rows` rows (an even number), wanted row r of the first half is stored as row 2r
// and row r of the second as row 2r + 1. 0: the rows are the same, and so is the one piece.
std::vector<Piece> pieces_of_run(const Sizes& shape, const Run& run, std::int64_t head_rows);

}  // namespace ptrain::dcp
