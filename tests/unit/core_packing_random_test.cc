#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "core/packing/random.h"

namespace ptrain::packing {
namespace {

// The first outputs of splitmix64 for seed 1234567, as published with its reference code's ports
// (rosettacode.org, "Pseudo-random numbers/Splitmix64").
TEST(RandomStream, PublishedNumbers) {
  RandomStream stream(1234567);
  for (const std::uint64_t expected :
       {6457827717110365317u, 3203168211198807973u, 9817491932198370423u, 4593380528125082431u,
        16408922859458223821u})
    EXPECT_EQ(stream.next(), expected);
}

TEST(RandomStream, BelowIsInRangeAndEven) {
  RandomStream stream(3);
  std::array<int, 6> seen{};
  for (int i = 0; i < 6000; ++i) ++seen.at(static_cast<std::size_t>(stream.below(6)));
  for (const int count : seen) EXPECT_NEAR(count, 1000, 150);  // 5 sigma
  EXPECT_EQ(stream.below(1), 0u);
}

// Of one source without a weight.
std::vector<std::int64_t> document_order(std::uint64_t seed, std::int64_t epoch,
                                         std::int64_t num_documents) {
  return weighted_order(seed, epoch, {{0, num_documents}});
}

// All 24 orders of 4 documents come about equally often over 2,400 epochs.
TEST(DocumentOrder, EveryOrderIsEquallyLikely) {
  std::map<std::vector<std::int64_t>, int> seen;
  for (std::int64_t epoch = 0; epoch < 2400; ++epoch) ++seen[document_order(5, epoch, 4)];
  EXPECT_EQ(seen.size(), 24u);
  for (const auto& [order, count] : seen) EXPECT_NEAR(count, 100, 50);
}

TEST(DocumentOrder, IsAPermutationThatSeedAndEpochFix) {
  const auto order = document_order(1, 0, 1000);
  EXPECT_EQ(order, document_order(1, 0, 1000));
  EXPECT_NE(order, document_order(1, 1, 1000));
  EXPECT_NE(order, document_order(2, 0, 1000));
  auto sorted = order;
  std::ranges::sort(sorted);
  std::vector<std::int64_t> all(1000);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(sorted, all);
  EXPECT_TRUE(document_order(1, 0, 0).empty());
}

// 4 documents at 1.5 and 3 at 1/3: 6 + 1 an epoch. Two epochs give each of the first three times,
// three epochs give each of the second once.
TEST(WeightedOrder, EachDocumentComesAsOftenAsItsSourceWeighs) {
  const std::vector<WeightedSource> sources{{0, 4, 1.5}, {4, 3, 1.0 / 3}};
  std::map<std::int64_t, int> seen;
  for (std::int64_t epoch = 0; epoch < 6; ++epoch) {
    const auto order = weighted_order(9, epoch, sources);
    EXPECT_EQ(order.size(), 7u);
    for (const std::int64_t document : order) ++seen[document];
    for (std::int64_t document = 0; document < 4; ++document)
      EXPECT_GE(std::ranges::count(order, document), 1);
  }
  EXPECT_EQ(seen,
            (std::map<std::int64_t, int>{{0, 9}, {1, 9}, {2, 9}, {3, 9}, {4, 2}, {5, 2}, {6, 2}}));
}

TEST(WeightedOrder, SourcesWithoutWeightsAreOne) {
  EXPECT_EQ(weighted_order(3, 5, {{0, 40, 1}, {40, 0, 1}, {40, 60, 1}}), document_order(3, 5, 100));
  EXPECT_EQ(weighted_order(3, std::int64_t{1} << 61, {{0, 7, 0.001}}).size(), 1u);
}

TEST(StreamKey, EachArgumentCounts) {
  const auto key = stream_key(1, Draw::kRowOrder, 2, 3);
  EXPECT_NE(key, stream_key(2, Draw::kRowOrder, 2, 3));
  EXPECT_NE(key, stream_key(1, Draw::kDocumentOrder, 2, 3));
  EXPECT_NE(key, stream_key(1, Draw::kRowOrder, 3, 3));
  EXPECT_NE(key, stream_key(1, Draw::kRowOrder, 3, 2));
}

}  // namespace
}  // namespace ptrain::packing
