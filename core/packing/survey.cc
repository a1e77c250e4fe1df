#include "core/packing/survey.h"

#include <algorithm>
#include <bit>

#include "core/packing/bins.h"

namespace ptrain::packing {
namespace {

std::vector<std::int64_t> pieces_of(std::span<const std::int64_t> lengths, std::int64_t capacity) {
  std::vector<std::int64_t> pieces;
  pieces.reserve(lengths.size());
  for (std::int64_t length : lengths)
    for (; length > 0; length -= capacity) pieces.push_back(std::min(length, capacity));
  return pieces;
}

void count(std::int64_t length, Survey& result) {
  if (length == 0) return;
  const auto order = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(length)));
  while (result.histogram.size() < order)
    result.histogram.push_back({std::int64_t{1} << result.histogram.size(), 0, 0});
  ++result.histogram[order - 1].documents;
  result.histogram[order - 1].tokens += length;
  ++result.documents;
  result.tokens += length;
  result.longest = std::max(result.longest, length);
  result.cut += length > result.capacity ? 1 : 0;
}

}  // namespace

Survey survey(std::span<const std::int64_t> lengths, std::int64_t capacity, std::int64_t window) {
  Survey result;
  result.capacity = capacity;
  for (const std::int64_t length : lengths) count(length, result);
  const auto first = std::ranges::find_if(
      result.histogram, [](const LengthClass& length_class) { return length_class.documents > 0; });
  result.histogram.erase(result.histogram.begin(), first);
  for (const auto& [word, strategy] : kStrategies) result.packed.push_back({strategy, 0, 0});
  const std::size_t step = window > 0 ? static_cast<std::size_t>(window) : lengths.size();
  for (std::size_t begin = 0; begin < lengths.size(); begin += step) {
    const auto part = lengths.subspan(begin, std::min(step, lengths.size() - begin));
    const auto pieces = pieces_of(part, capacity);
    for (Packed& packed : result.packed)
      packed.rows += pack(packed.strategy, pieces, capacity).count;
  }
  for (Packed& packed : result.packed)
    if (packed.rows > 0)
      packed.efficiency = static_cast<double>(result.tokens) /
                          (static_cast<double>(packed.rows) * static_cast<double>(capacity));
  return result;
}

}  // namespace ptrain::packing
