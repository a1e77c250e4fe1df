#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace ptrain::packing {

// splitmix64 (Steele, Lea, Flood 2014): one word of state, the same numbers on every machine.
class RandomStream {
 public:
  explicit RandomStream(std::uint64_t key) : state_(key) {}
  std::uint64_t next();
  // Uniform in [0, bound), without bias; bound > 0.
  std::uint64_t below(std::uint64_t bound);

 private:
  std::uint64_t state_;
};

enum class Draw : std::uint64_t { kDocumentOrder = 1, kRowOrder = 2, kChoice = 3 };

// The key of a stream of its own for each (seed, draw, epoch, window).
std::uint64_t stream_key(std::uint64_t seed, Draw draw, std::int64_t epoch,
                         std::int64_t window = 0);

// Fisher-Yates from the last element down; every order is equally likely.
template <class T>
void shuffle(std::vector<T>& items, RandomStream stream) {
  for (std::size_t left = items.size(); left > 1; --left)
    std::swap(items[left - 1], items[static_cast<std::size_t>(stream.below(left))]);
}

// How often the documents of a source come in an epoch: `weight` times in the mean.
struct WeightedSource {
  std::int64_t first_document = 0;
  std::int64_t num_documents = 0;
  double weight = 1;
};

// Source i holds the documents from bounds[i] to bounds[i + 1]; weights that are not given are 1.
std::vector<WeightedSource> sources_from(const std::vector<std::int64_t>& bounds,
                                         const std::vector<double>& weights);

// The documents of an epoch, shuffled. Of a source with weight 2.25 every document comes twice and
// a quarter of them, rounded, a third time: each epoch goes on in the source's own seeded order
// where the one before it ended, so that the choice falls on all alike. At least one document of a
// source comes. The number is the same in every epoch. A function of its arguments alone.
std::vector<std::int64_t> weighted_order(std::uint64_t seed, std::int64_t epoch,
                                         const std::vector<WeightedSource>& sources);

}  // namespace ptrain::packing
