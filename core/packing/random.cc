#include "core/packing/random.h"

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

std::vector<std::int64_t> document_order(std::uint64_t seed, std::int64_t epoch,
                                         std::int64_t num_documents) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(num_documents));
  std::iota(order.begin(), order.end(), 0);
  shuffle(order, RandomStream(stream_key(seed, Draw::kDocumentOrder, epoch)));
  return order;
}

}  // namespace ptrain::packing
