#pragma once

#include <cstdint>
#include <vector>

#include "core/model/architecture.h"

namespace ptrain::model {

// Elements of a part that are neighbours in the whole parameter too: [begin, end) there, the first
// of them `place` elements behind the start of what was asked for.
struct WholeRun {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t place = 0;
  bool operator==(const WholeRun&) const = default;
};

// Elements [begin, end) of the flattened parameter, which may be a part, in their order.
std::vector<WholeRun> runs_of_whole(const ParameterSpec& parameter, std::int64_t begin,
                                    std::int64_t end);

// The same, of a part of this shape that begins at `offsets` of a whole.
struct Part {
  const std::vector<std::int64_t>& whole_shape;
  const std::vector<std::int64_t>& offsets;
  const std::vector<std::int64_t>& shape;
};
std::vector<WholeRun> runs_of_whole(const Part& part, std::int64_t begin, std::int64_t end);

// The shape of the whole, and where the parameter begins in it.
const std::vector<std::int64_t>& whole_shape_of(const ParameterSpec& parameter);
std::vector<std::int64_t> offsets_of(const ParameterSpec& parameter);

// Whether the parameter's element `index` is the first of the whole.
bool begins_whole(const ParameterSpec& parameter, std::int64_t index);

}  // namespace ptrain::model
