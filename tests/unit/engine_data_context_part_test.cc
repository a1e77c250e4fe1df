#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "engine/data/context_part.h"

namespace ptrain::data {
namespace {

// Two rows of 24 tokens, numbered from 0 on.
MicroBatch whole_rows() {
  MicroBatch whole;
  whole.rows = 2;
  whole.sequence = 24;
  whole.documents = {{0, 24}, {24, 29}, {29, 47}, {47, 48}};
  whole.tokens.resize(48);
  std::iota(whole.tokens.begin(), whole.tokens.end(), 0);
  for (const std::int32_t token : whole.tokens) whole.targets.push_back(token % 7 ? token : -1);
  for (const DocumentSpan& span : whole.documents)
    for (std::int64_t i = span.begin; i < span.end; ++i)
      whole.positions.push_back(static_cast<std::int32_t>(i - span.begin));
  return whole;
}

ContextRanks ranks_of(int ring, int ulysses, int rank) {
  return {{ring, rank / ulysses}, {ulysses, rank % ulysses}};
}

class ContextPart : public testing::TestWithParam<std::pair<int, int>> {};

TEST_P(ContextPart, RanksHoldEachTokenOnceWithWhatBelongsToIt) {
  const auto [ring, ulysses] = GetParam();
  const MicroBatch whole = whole_rows();
  std::vector<std::int32_t> all;
  for (int rank = 0; rank < ring * ulysses; ++rank) {
    const MicroBatch part = context_part(whole, ranks_of(ring, ulysses, rank));
    ASSERT_EQ(part.num_tokens(), 48 / (ring * ulysses));
    ASSERT_EQ(std::ssize(part.tokens), part.num_tokens());
    for (std::size_t i = 0; i < part.tokens.size(); ++i) {
      const auto token = static_cast<std::size_t>(part.tokens[i]);
      EXPECT_EQ(part.positions[i], whole.positions[token]);
      EXPECT_EQ(part.targets[i], whole.targets[token]);
      const TokenPlace place = place_of_token(whole, ranks_of(ring, ulysses, 0), part.tokens[i]);
      EXPECT_EQ(place.cp_rank, rank);
      EXPECT_EQ(place.token, static_cast<std::int64_t>(i));
    }
    EXPECT_EQ(part.documents.back().end, part.num_tokens());
    all.insert(all.end(), part.tokens.begin(), part.tokens.end());
  }
  std::ranges::sort(all);
  EXPECT_EQ(all, whole.tokens);
}

INSTANTIATE_TEST_SUITE_P(All, ContextPart,
                         testing::Values(std::pair{1, 1}, std::pair{1, 2}, std::pair{2, 1},
                                         std::pair{3, 1}, std::pair{4, 1}, std::pair{2, 2},
                                         std::pair{3, 4}),
                         [](const auto& tested) {
                           return "ring" + std::to_string(tested.param.first) + "ulysses" +
                                  std::to_string(tested.param.second);
                         });

// One document: of four chunks the first rank has the outer ones, and its queries the whole ring's
// pieces to look at.
TEST(ContextPart, OneDocumentIsSharedInZigZag) {
  const MicroBatch whole = rows_of_one_document(1, 16);
  const MicroBatch first = context_part(whole, ranks_of(2, 1, 0));
  EXPECT_EQ(first.positions, (std::vector<std::int32_t>{0, 1, 2, 3, 12, 13, 14, 15}));
  ASSERT_EQ(first.ring_pieces.size(), 2u);
  EXPECT_EQ(first.ring_pieces[1], (packing::ContextPieces{{0, 4, 12}}));
}

}  // namespace
}  // namespace ptrain::data
