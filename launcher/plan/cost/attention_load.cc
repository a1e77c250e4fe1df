#include "launcher/plan/cost/attention_load.h"

#include <algorithm>
#include <cmath>

#include "core/packing/bins.h"
#include "core/packing/random.h"

namespace ptrain::plan {

namespace {

// A larger window is packed hardly better, and this takes a millisecond.
constexpr std::int64_t kMostSampled = 1 << 14;

double documents_of(const LengthHistogram& lengths) {
  double documents = 0;
  for (const auto& [length, count] : lengths) documents += count;
  return documents;
}

// Lengths at evenly spaced places of all documents in order of length, shuffled.
std::vector<std::int64_t> sample_of(const LengthHistogram& lengths, std::int64_t window) {
  const double documents = documents_of(lengths);
  const auto size = std::clamp<std::int64_t>(std::llround(documents), 1,
                                             std::clamp<std::int64_t>(window, 1, kMostSampled));
  std::vector<std::int64_t> sample;
  double before = 0;
  for (const auto& [length, count] : lengths) {
    before += count;
    const auto place = [&] {
      return (static_cast<double>(sample.size()) + 0.5) / static_cast<double>(size);
    };
    while (std::ssize(sample) < size && place() * documents < before) sample.push_back(length);
  }
  packing::shuffle(sample, packing::RandomStream(0));
  return sample;
}

}  // namespace

AttentionLoad attention_load(std::int64_t sequence, const LengthHistogram& lengths,
                             std::int64_t block_rows) {
  AttentionLoad sum;
  double tokens = 0;
  const auto add = [&](std::int64_t piece, double count) {
    const auto rows = static_cast<double>(block_rows);
    const auto whole = static_cast<double>(piece / block_rows);
    const auto rest = static_cast<double>(piece % block_rows);
    sum.blocks += count * (whole + (rest > 0 ? 1 : 0));
    sum.pairs += count * (rows * rows * whole * (whole + 1) / 2 + rest * (whole * rows + rest));
    tokens += count * static_cast<double>(piece);
  };
  for (const auto& [length, count] : lengths) {
    add(sequence, static_cast<double>(length / sequence) * count);
    add(length % sequence, count);
  }
  if (tokens == 0) add(sequence, 1);
  return {sum.blocks / tokens, sum.pairs / tokens};
}

// Of a long document one whole piece is packed like any other; each further one fills a row alone.
double row_fill(std::int64_t sequence, const LengthHistogram& lengths,
                const recipe::Packing& packing) {
  std::vector<std::int64_t> pieces;
  double tokens = 0;
  double rows = 0;
  for (const std::int64_t length : sample_of(lengths, packing.window)) {
    const std::int64_t whole = length / sequence;
    tokens += static_cast<double>(length);
    if (whole > 0) pieces.push_back(sequence);
    if (whole > 1) rows += static_cast<double>(whole - 1);
    if (length % sequence > 0) pieces.push_back(length % sequence);
  }
  rows += static_cast<double>(packing::pack(packing.strategy, pieces, sequence).count);
  return rows > 0 ? tokens / (rows * static_cast<double>(sequence)) : 1;
}

AttentionLoad packed_attention_load(std::int64_t sequence, const LengthHistogram& lengths,
                                    const recipe::Packing& packing, std::int64_t block_rows) {
  const AttentionLoad full = attention_load(sequence, lengths, block_rows);
  const double fill = row_fill(sequence, lengths, packing);
  return {full.blocks * fill, full.pairs * fill};
}

}  // namespace ptrain::plan
