#include "core/packing/window.h"

#include <algorithm>
#include <tuple>

#include "core/packing/bins.h"
#include "core/packing/random.h"

namespace ptrain::packing {
namespace {

std::vector<Range> cut(std::span<const Range> ranges, std::int64_t sequence) {
  std::vector<Range> pieces;
  pieces.reserve(ranges.size());
  for (const Range& range : ranges)
    for (std::int64_t begin = range.begin; begin < range.end; begin += sequence)
      pieces.push_back({range.document, begin, std::min(begin + sequence, range.end)});
  return pieces;
}

}  // namespace

Range whole_document(std::int64_t document, std::int64_t num_tokens) {
  return {document, 0, std::max<std::int64_t>(num_tokens - 1, 0)};
}

std::vector<Row> pack_window(std::span<const Range> ranges, const Packer& packer,
                             std::uint64_t key) {
  const std::vector<Range> pieces = cut(ranges, packer.sequence);
  std::vector<std::int64_t> lengths(pieces.size());
  std::ranges::transform(pieces, lengths.begin(), &Range::length);
  const Bins bins = pack(packer.strategy, lengths, packer.sequence);
  std::vector<Row> rows(static_cast<std::size_t>(bins.count));
  for (const std::int64_t item : bins.placed) {
    const auto i = static_cast<std::size_t>(item);
    rows[static_cast<std::size_t>(bins.bin_of[i])].push_back(pieces[i]);
  }
  shuffle(rows, RandomStream(key));
  return rows;
}

std::vector<Range> unused_ranges(std::span<const Row> rows, std::int64_t first) {
  std::vector<Range> ranges;
  for (const Row& row : rows.subspan(static_cast<std::size_t>(first)))
    ranges.insert(ranges.end(), row.begin(), row.end());
  std::ranges::sort(ranges, {}, [](const Range& r) { return std::tuple(r.document, r.begin); });
  std::vector<Range> joined;
  for (const Range& range : ranges) {
    if (!joined.empty() && joined.back().document == range.document &&
        joined.back().end == range.begin)
      joined.back().end = range.end;
    else
      joined.push_back(range);
  }
  return joined;
}

}  // namespace ptrain::packing
