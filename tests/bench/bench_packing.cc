// Seconds to pack a million documents into rows, longest first, each where it fits best: the best
// of five. Argument: a list of tests/fixtures/packing, from which lengths are drawn.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <random>
#include <vector>

#include "core/packing/bins.h"

namespace {

using Lengths = std::vector<std::int64_t>;

Lengths drawn(const char* path, std::size_t documents) {
  std::ifstream file(path);
  Lengths lengths;
  std::vector<double> counts;
  std::int64_t length = 0;
  double count = 0;
  while (file >> length >> count) {
    lengths.push_back(length);
    counts.push_back(count);
  }
  std::mt19937 generator(1);
  std::discrete_distribution<std::size_t> draw(counts.begin(), counts.end());
  Lengths result(documents);
  std::ranges::generate(result, [&] { return lengths.at(draw(generator)); });
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  using Clock = std::chrono::steady_clock;
  constexpr std::size_t kDocuments = 1'000'000;
  if (argc != 2) {
    std::fprintf(stderr, "give a list of tests/fixtures/packing\n");
    return 2;
  }
  const Lengths lengths = drawn(argv[1], kDocuments);
  std::printf("%10s %10s %10s\n", "capacity", "rows", "seconds");
  for (const std::int64_t capacity : {4096, 8192, 32768, 131072}) {
    Lengths cut = lengths;
    for (std::int64_t& length : cut) length = std::min(length, capacity);
    double best = 1e9;
    std::int64_t rows = 0;
    for (int i = 0; i < 5; ++i) {
      const auto begin = Clock::now();
      rows = ptrain::packing::best_fit_decreasing(cut, capacity).count;
      best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count());
    }
    std::printf("%10lld %10lld %10.3f\n", static_cast<long long>(capacity),
                static_cast<long long>(rows), best);
  }
}
