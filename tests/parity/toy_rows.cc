#include "tests/parity/toy_rows.h"

#include <algorithm>
#include <optional>
#include <random>

#include "tests/parity/packed_rows.h"

namespace ptrain::parity {
namespace {

// Appends one document of `length` tokens; the last has no target.
void append_document(data::MicroBatch& row, std::int64_t length, std::int32_t vocabulary,
                     std::mt19937_64& random) {
  const auto begin = static_cast<std::int64_t>(row.tokens.size());
  for (std::int64_t i = 0; i < length; ++i) {
    row.tokens.push_back(static_cast<std::int32_t>(random() % static_cast<unsigned>(vocabulary)));
    row.positions.push_back(static_cast<std::int32_t>(i));
    row.targets.push_back(
        i + 1 < length ? 0
                       : static_cast<std::int32_t>(random() % static_cast<unsigned>(vocabulary)));
  }
  for (std::int64_t i = 0; i + 1 < length; ++i)
    row.targets[static_cast<std::size_t>(begin + i)] =
        row.tokens[static_cast<std::size_t>(begin + i + 1)];
  row.documents.push_back({begin, begin + length});
}

void pad(data::MicroBatch& row) {
  const auto begin = static_cast<std::int64_t>(row.tokens.size());
  for (std::int64_t i = begin; i < row.sequence; ++i) {
    row.tokens.push_back(1);
    row.targets.push_back(data::kNoTarget);
    row.positions.push_back(static_cast<std::int32_t>(i - begin));
  }
  if (begin < row.sequence) row.documents.push_back({begin, row.sequence});
}

std::optional<packing::Strategy> strategy_of(RowKind kind) {
  switch (kind) {
    case RowKind::kNextFit:
      return packing::Strategy::kNextFit;
    case RowKind::kFirstFit:
      return packing::Strategy::kFirstFit;
    case RowKind::kBestFit:
      return packing::Strategy::kBestFitDecreasing;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::vector<data::MicroBatch> toy_rows(std::int64_t num_rows, std::int64_t sequence,
                                       std::int32_t vocabulary, std::uint64_t seed, RowKind kind) {
  if (const auto strategy = strategy_of(kind))
    return packed_rows({num_rows, sequence, vocabulary, seed, *strategy});
  std::mt19937_64 random(seed);
  std::vector<data::MicroBatch> rows;
  for (std::int64_t r = 0; r < num_rows; ++r) {
    data::MicroBatch row;
    row.rows = 1;
    row.sequence = sequence;
    const bool whole = kind == RowKind::kWholeDocument || (kind == RowKind::kShort && r % 4 == 0);
    // Every third row ends in padding, so ranks differ in their number of targets.
    const std::int64_t used = r % 3 == 2 && !whole ? sequence - 3 : sequence;
    while (static_cast<std::int64_t>(row.tokens.size()) < used) {
      const auto rest = used - static_cast<std::int64_t>(row.tokens.size());
      const auto length =
          kind == RowKind::kShort
              ? 2
              : 1 + static_cast<std::int64_t>(random() % static_cast<unsigned>(sequence));
      append_document(row, whole ? sequence : std::min(rest, length), vocabulary, random);
      if (kind == RowKind::kOneDocument) break;
    }
    pad(row);
    rows.push_back(std::move(row));
  }
  return rows;
}

data::MicroBatch join_rows(const std::vector<data::MicroBatch>& rows, std::int64_t first,
                           std::int64_t count) {
  data::MicroBatch all;
  all.rows = count;
  all.sequence = rows.front().sequence;
  for (std::int64_t r = first; r < first + count; ++r) {
    const auto& row = rows[static_cast<std::size_t>(r)];
    const auto start = static_cast<std::int64_t>(all.tokens.size());
    all.tokens.insert(all.tokens.end(), row.tokens.begin(), row.tokens.end());
    all.targets.insert(all.targets.end(), row.targets.begin(), row.targets.end());
    all.positions.insert(all.positions.end(), row.positions.begin(), row.positions.end());
    for (const auto& span : row.documents)
      all.documents.push_back({span.begin + start, span.end + start});
  }
  return all;
}

}  // namespace ptrain::parity
