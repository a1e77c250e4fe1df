#include "core/model/slice.h"

#include <algorithm>

namespace ptrain::model {
namespace {

using Sizes = std::vector<std::int64_t>;

// The whole's flat index of the part's element `index`.
std::int64_t index_in_whole(const Part& part, std::int64_t index) {
  std::int64_t result = 0, stride = 1;
  for (std::size_t d = part.shape.size(); d-- > 0;) {
    result += (part.offsets[d] + index % part.shape[d]) * stride;
    index /= part.shape[d];
    stride *= part.whole_shape[d];
  }
  return result;
}

// Elements of the part that follow each other in the whole: those of all dims behind the last one
// that is cut, and of that.
std::int64_t contiguous_elements(const Part& part) {
  std::int64_t elements = 1;
  for (std::size_t d = part.shape.size(); d-- > 0;) {
    elements *= part.shape[d];
    if (part.shape[d] != part.whole_shape[d]) break;
  }
  return elements;
}

}  // namespace

std::vector<WholeRun> runs_of_whole(const Part& part, std::int64_t begin, std::int64_t end) {
  const std::int64_t stretch = contiguous_elements(part);
  std::vector<WholeRun> runs;
  for (std::int64_t at = begin; at < end;) {
    const std::int64_t next = std::min(end, (at / stretch + 1) * stretch);
    const std::int64_t first = index_in_whole(part, at);
    runs.push_back({first, first + next - at, at - begin});
    at = next;
  }
  return runs;
}

std::vector<WholeRun> runs_of_whole(const ParameterSpec& parameter, std::int64_t begin,
                                    std::int64_t end) {
  if (begin >= end) return {};
  if (parameter.whole_shape.empty()) return {{begin, end, 0}};
  return runs_of_whole(Part{parameter.whole_shape, parameter.offsets, parameter.shape}, begin, end);
}

const Sizes& whole_shape_of(const ParameterSpec& parameter) {
  return parameter.whole_shape.empty() ? parameter.shape : parameter.whole_shape;
}

bool begins_whole(const ParameterSpec& parameter, std::int64_t index) {
  return index == 0 && std::ranges::all_of(parameter.offsets, [](auto o) { return o == 0; });
}

Sizes offsets_of(const ParameterSpec& parameter) {
  return parameter.whole_shape.empty() ? Sizes(parameter.shape.size(), 0) : parameter.offsets;
}

}  // namespace ptrain::model
