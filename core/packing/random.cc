#include "core/packing/random.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ptrain::packing {

std::uint64_t RandomStream::next() {
  std::uint64_t word = (state_ += 0x9e3779b97f4a7c15u);
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
  return word ^ (word >> 31);
}

// Lemire's multiply-and-reject: the high half of word x bound is the result, and the few low halves
// that would favour some results are drawn again.
std::uint64_t RandomStream::below(std::uint64_t bound) {
  const std::uint64_t reject_under = (0 - bound) % bound;
  while (true) {
    const auto product = static_cast<unsigned __int128>(next()) * bound;
    if (static_cast<std::uint64_t>(product) >= reject_under)
      return static_cast<std::uint64_t>(product >> 64);
  }
}

std::uint64_t stream_key(std::uint64_t seed, Draw draw, std::int64_t epoch, std::int64_t window) {
  std::uint64_t key = RandomStream(seed).next();
  key = RandomStream(key ^ static_cast<std::uint64_t>(draw)).next();
  key = RandomStream(key ^ static_cast<std::uint64_t>(epoch)).next();
  return RandomStream(key ^ static_cast<std::uint64_t>(window)).next();
}

namespace {

// The documents of one source in an epoch, in no order that matters.
void draw(std::uint64_t seed, std::int64_t epoch, std::size_t number, const WeightedSource& source,
          std::vector<std::int64_t>& documents) {
  if (source.num_documents == 0) return;
  const auto size = static_cast<double>(source.num_documents);
  const std::int64_t total = std::max<std::int64_t>(1, std::llround(source.weight * size));
  const std::int64_t extra = total % source.num_documents;
  for (std::int64_t copy = 0; copy < total / source.num_documents; ++copy)
    for (std::int64_t i = 0; i < source.num_documents; ++i)
      documents.push_back(source.first_document + i);
  if (extra == 0) return;
  std::vector<std::int64_t> order(static_cast<std::size_t>(source.num_documents));
  std::iota(order.begin(), order.end(), source.first_document);
  const auto choice = static_cast<std::int64_t>(number);
  shuffle(order, RandomStream(stream_key(seed, Draw::kChoice, choice)));
  const std::int64_t begin = (epoch % source.num_documents) * extra % source.num_documents;
  for (std::int64_t i = 0; i < extra; ++i)
    documents.push_back(order[static_cast<std::size_t>((begin + i) % source.num_documents)]);
}

}  // namespace

std::vector<WeightedSource> sources_from(const std::vector<std::int64_t>& bounds,
                                         const std::vector<double>& weights) {
  std::vector<WeightedSource> sources;
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i)
    sources.push_back(
        {bounds[i], bounds[i + 1] - bounds[i], i < weights.size() ? weights[i] : 1.0});
  return sources;
}

std::vector<std::int64_t> weighted_order(std::uint64_t seed, std::int64_t epoch,
                                         const std::vector<WeightedSource>& sources) {
  std::vector<std::int64_t> documents;
  for (std::size_t i = 0; i < sources.size(); ++i) draw(seed, epoch, i, sources[i], documents);
  shuffle(documents, RandomStream(stream_key(seed, Draw::kDocumentOrder, epoch)));
  return documents;
}

}  // namespace ptrain::packing
