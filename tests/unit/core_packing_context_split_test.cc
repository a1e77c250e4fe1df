#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "core/packing/context_split.h"

namespace ptrain::packing {
namespace {

using Ends = std::vector<std::int64_t>;

std::int64_t tokens_of(const ContextPieces& pieces) {
  std::int64_t tokens = 0;
  for (const auto& piece : pieces) tokens += piece.end - piece.begin;
  return tokens;
}

// Chunks of 16 tokens on 2 ranks by hand: rank 0 has 0..3 and 12..15.
TEST(ContextSplit, CutsARowInAZigZag) {
  const auto ranks = split_row(Ends{16}, 2, ContextSplit::kPerRow);
  EXPECT_EQ(ranks[0], (ContextPieces{{0, 0, 4}, {0, 12, 16}}));
  EXPECT_EQ(ranks[1], (ContextPieces{{0, 4, 12}}));
}

TEST(ContextSplit, PiecesEndWithTheirDocument) {
  const auto ranks = split_row(Ends{3, 16}, 2, ContextSplit::kPerRow);
  EXPECT_EQ(ranks[0], (ContextPieces{{0, 0, 3}, {1, 3, 4}, {1, 12, 16}}));
  EXPECT_EQ(ranks[1], (ContextPieces{{1, 4, 12}}));
}

TEST(ContextSplit, CutsEachDocument) {
  const auto ranks = split_row(Ends{8, 16}, 2, ContextSplit::kPerDocument);
  EXPECT_EQ(ranks[0], (ContextPieces{{0, 0, 2}, {0, 6, 8}, {1, 8, 10}, {1, 14, 16}}));
  EXPECT_EQ(ranks[1], (ContextPieces{{0, 2, 6}, {1, 10, 14}}));
}

// One document of n tokens: n (n + 1) / 2 pairs, halved exactly by the zig-zag of 16 tokens:
// 1+2+3+4 + 13+14+15+16 = 68.
TEST(ContextSplit, CountsPairsOfCausalAttention) {
  const Ends ends{16};
  const auto ranks = split_row(ends, 2, ContextSplit::kPerRow);
  EXPECT_EQ(attended_pairs(ends, ranks[0]), 68);
  EXPECT_EQ(attended_pairs(ends, ranks[1]), 68);
}

// By hand, of 15 tokens and 1: the busiest rank attends to 5 + ... + 12 = 68 pairs where the row is
// cut, and to 10 + 54 = 64 where each document is.
TEST(ContextSplit, IsChosenByTheBusiestRank) {
  EXPECT_EQ(choose_split(Ends{16}, 2), ContextSplit::kPerRow);
  EXPECT_EQ(choose_split(Ends{15, 16}, 2), ContextSplit::kPerDocument);
  EXPECT_EQ(choose_split(Ends{4, 8, 16}, 2), ContextSplit::kPerDocument);
  EXPECT_EQ(choose_split(Ends{18}, 2), ContextSplit::kPerDocument);  // no multiple of 4
}

RC_GTEST_PROP(ContextSplit, EveryTokenLiesOnOneRankAndAllHaveAsMany, ()) {
  const int num_ranks = *rc::gen::inRange(1, 7);
  const auto split = *rc::gen::element(ContextSplit::kPerRow, ContextSplit::kPerDocument);
  const std::int64_t sequence = 2 * num_ranks * *rc::gen::inRange<std::int64_t>(1, 30);
  Ends ends = *rc::gen::container<Ends>(rc::gen::inRange<std::int64_t>(1, sequence));
  ends.push_back(sequence);
  std::ranges::sort(ends);
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  const auto ranks = split_row(ends, num_ranks, split);
  std::vector<int> seen(static_cast<std::size_t>(sequence));
  std::int64_t pairs = 0, all = 0;
  for (const auto& pieces : ranks) {
    RC_ASSERT(tokens_of(pieces) == sequence / num_ranks);
    RC_ASSERT(std::ranges::is_sorted(pieces, {}, &ContextPiece::begin));
    pairs += attended_pairs(ends, pieces);
    for (const auto& piece : pieces) {
      RC_ASSERT(piece.begin < piece.end);
      const auto document = static_cast<std::size_t>(piece.document);
      RC_ASSERT(piece.end <= ends[document] &&
                (document == 0 || piece.begin >= ends[document - 1]));
      for (auto token = piece.begin; token < piece.end; ++token)
        seen[static_cast<std::size_t>(token)] += 1;
    }
  }
  RC_ASSERT(std::ranges::count(seen, 1) == sequence);
  for (std::size_t d = 0; d < ends.size(); ++d) {
    const std::int64_t length = ends[d] - (d == 0 ? 0 : ends[d - 1]);
    all += length * (length + 1) / 2;
  }
  RC_ASSERT(pairs == all);
}

}  // namespace
}  // namespace ptrain::packing
