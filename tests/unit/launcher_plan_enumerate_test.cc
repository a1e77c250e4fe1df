#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>

#include "core/model/optimizer.h"
#include "launcher/plan/axes.h"
#include "launcher/plan/enumerate.h"
#include "launcher/plan/explain.h"
#include "tests/support/small_model.h"

namespace ptrain::plan {
namespace {

std::map<std::string, int> counts(const Enumeration& all) {
  std::map<std::string, int> out;
  for (const auto& one : all.rejected) out[one.reason] += 1;
  return out;
}

bool is_plain(const mesh::Layout& layout) { return layout.pp * layout.tp * layout.cp == 1; }

// Legal, over dp and shard alone.
std::vector<mesh::Layout> plain(const Enumeration& all) {
  std::vector<mesh::Layout> out;
  for (const auto& layout : all.legal)
    if (is_plain(layout)) out.push_back(layout);
  return out;
}

TEST(Divisors, AreAllAndAscending) {
  EXPECT_EQ(divisors(1), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(divisors(12), (std::vector<std::int64_t>{1, 2, 3, 4, 6, 12}));
  EXPECT_EQ(divisors(16), (std::vector<std::int64_t>{1, 2, 4, 8, 16}));
}

// One rank, 4 rows: micro-batches 1, 2, 4, each without recomputation, with selective and full.
TEST(Enumerate, OneRank) {
  const auto all = enumerate({1, 4, {}});
  EXPECT_EQ(all.legal.size(), 9u);
  EXPECT_TRUE(all.rejected.empty());
}

// Two ranks, 12 rows, so 6 a rank: 4 micro-batches x 3 recomputes = 12 for dp 2; for shard 2: zero
// 1 and 2 have 12 each, zero 3 has 12 for each of 3 prefetches: 12 + 12 + 36. With 12 rows for both
// there are 6 micro-batches: 18 layouts of tp 2, and 72 of pp 2, for one or two stages a rank and
// two schedules each; and of cp 2, a ring or ulysses ranks, 18 for zero 1 and 2 and for each
// prefetch of zero 3.
TEST(Enumerate, TwoRanksByHand) {
  const auto all = enumerate({2, 12, {}});
  EXPECT_EQ(plain(all).size(), 12u + 12 + 12 + 36);
  EXPECT_EQ(all.legal.size(), plain(all).size() + 18 + 72 + 2 * 5 * 18);
  EXPECT_TRUE(all.rejected.empty());
}

// 4 = dp x shard in 3 ways; 6 rows divide over 4 ranks in none of them, but over 2 and 1.
TEST(Enumerate, RowsMustDivide) {
  const auto all = enumerate({4, 6, {}});
  EXPECT_TRUE(plain(all).empty());
  EXPECT_EQ(counts(all),
            (std::map<std::string, int>{{"the rows of a step do not divide over the ranks", 3}}));
  const auto few = enumerate({4, 3, {}});
  EXPECT_EQ(counts(few)["more ranks than rows"], 3);
}

TEST(Enumerate, HonoursWhatTheRecipeFixes) {
  recipe::Parallel fixed;
  fixed.shard = 2;
  fixed.zero = 3;
  fixed.micro_batch = 3;
  fixed.recompute = recipe::Recompute::kNone;
  const auto all = enumerate({2, 12, fixed});
  ASSERT_EQ(all.legal.size(), 3u);  // the three prefetches
  for (const auto& layout : all.legal) {
    EXPECT_EQ(layout.shard, 2);
    EXPECT_EQ(layout.zero, 3);
    EXPECT_EQ(layout.micro_batch, 3);
    EXPECT_EQ(layout.num_micro_batches, 2);
    EXPECT_EQ(layout.recompute, recipe::Recompute::kNone);
  }
  // Five other choices of degrees; of this one two of zero, three micro-batches that divide 6 rows,
  // and two of what is computed again.
  EXPECT_EQ(counts(all)["the recipe fixes another choice"], 5 + 2 + 3 + 2);
}

// In a shared window nothing is gathered, so nothing can be gathered ahead: 12 layouts of dp 2 and
// of each zero.
TEST(Enumerate, ASharedWindowHasNoPrefetch) {
  const auto all = enumerate({2, 12, {}, true});
  EXPECT_EQ(plain(all).size(), 12u * 4);
  for (const auto& layout : all.legal) EXPECT_EQ(layout.shared_window, layout.pp == 1);
}

// 12 tokens over 8 ranks: the nearest cp below and above are 6 and 12.
TEST(Enumerate, RowsDivideOverThoseWhoShareThem) {
  const auto all = enumerate({8, 8, {}, false, {}, nullptr, 12});
  for (const auto& layout : all.legal) EXPECT_EQ(12 % layout.cp, 0);
  EXPECT_EQ(counts(all)["cp does not divide a row"], 4);  // of each ulysses degree of cp 8
  for (const auto& one : all.rejected)
    if (one.reason == "cp does not divide a row") {
      EXPECT_EQ(one.detail, "12 tokens over ring x ulysses 8; the nearest that divides is 6");
    }
}

// Six experts over four ranks: 2 divides both.
TEST(Enumerate, ExpertsDivideOverThoseWhoShareThem) {
  recipe::Model model = support::small_model("qwen3_moe");
  model.num_experts = 6;
  model.vocab_size = 64;
  const auto whole = *model::make_architecture(model, DType::kFloat32);
  const char* reason = "ep and etp do not suit the model or the ranks";
  Space space{4, 8, {}, false, {}, &whole, 24};
  const auto free = enumerate(space);
  std::set<int> degrees;
  for (const auto& layout : free.legal) degrees.insert(layout.ep);
  EXPECT_EQ(degrees, (std::set<int>{1, 2}));
  EXPECT_GT(counts(free)[reason], 0);
  for (const auto& [ep, detail] :
       {std::pair{4,
                  "layout: ep is 4, which does not divide 6 experts; the nearest that does is "
                  "ep 2"},
        std::pair{3,
                  "layout: ep is 3, which does not divide 4 ranks of a stage over etp; the "
                  "nearest that does is ep 2"}}) {
    space.fixed.ep = ep;
    const auto all = enumerate(space);
    EXPECT_TRUE(all.legal.empty());
    for (const auto& one : all.rejected)
      if (one.reason == reason && one.layout.pp == 1) {
        EXPECT_EQ(one.detail, detail);
      }
    EXPECT_GT(counts(all)[reason], 0);
  }
}

// All degrees divide the model here; what Muon needs whole they split.
TEST(Enumerate, WhatTheOptimizerNeedsWholeIsNoFaultOfTheModel) {
  recipe::Model model = support::small_model("qwen3_moe");
  model.num_experts = 6;
  model.vocab_size = 64;
  auto whole = *model::make_architecture(model, DType::kFloat32);
  model::use_optimizer(whole, {.kind = recipe::OptimizerKind::kMuon});
  Space space{2, 8, {}, false, {}, &whole, 24};
  const auto free = counts(enumerate(space));
  EXPECT_GT(free.count("tp does not suit the optimizer"), 0u);
  EXPECT_EQ(free.count("tp does not divide the model"), 0u);
  space.fixed.etp = 2;
  const auto fixed = counts(enumerate(space));
  EXPECT_GT(fixed.count("etp does not suit the optimizer"), 0u);
}

TEST(Enumerate, HonoursAFixedPrefetch) {
  recipe::Parallel fixed;
  fixed.shard = 2;
  fixed.zero = 3;
  for (const int prefetch : {0, 2, 5}) {
    fixed.prefetch = prefetch;
    const auto all = enumerate({2, 12, fixed});
    EXPECT_EQ(all.legal.size(), 12u);
    for (const auto& layout : all.legal) EXPECT_EQ(layout.prefetch, prefetch);
  }
}

TEST(Enumerate, ZeroWithoutShardingIsNoOffence) {
  recipe::Parallel fixed;
  fixed.zero = 3;
  EXPECT_EQ(enumerate({1, 4, fixed}).legal.size(), 9u);
  fixed.shard = 1;
  fixed.pp = fixed.tp = fixed.ring = fixed.ulysses = 1;
  EXPECT_EQ(enumerate({2, 2, fixed}).legal.size(), 3u);
  fixed.shard = 0;
  for (const auto& layout : enumerate({2, 2, fixed}).legal) EXPECT_EQ(layout.shard, 2);
}

// Where tp takes all ranks there is nothing to shard.
TEST(Enumerate, ZeroIsNoOffenceWhereOtherAxesTakeAllRanks) {
  recipe::Parallel fixed;
  fixed.zero = 3;
  fixed.tp = 2;
  const auto legal = enumerate({2, 2, fixed}).legal;
  EXPECT_FALSE(legal.empty());
  for (const auto& layout : legal) EXPECT_EQ(layout.tp, 2);
}

// Ranks that share layers and rows run experts and latent attention, where all they split divides.
TEST(Enumerate, ExpertsShareLayersAndRows) {
  recipe::Model model = support::small_model("deepseek_v3");
  model.vocab_size = 64;
  Space space{4, 4, {}};
  space.sequence = 16;
  const auto degrees_of = [&] {
    const auto whole = *model::make_architecture(model, DType::kFloat32);
    space.architecture = &whole;
    std::set<std::pair<int, int>> degrees;
    for (const auto& layout : enumerate(space).legal) degrees.emplace(layout.tp, layout.cp);
    return degrees;
  };
  using Degrees = std::set<std::pair<int, int>>;
  EXPECT_EQ(degrees_of(), (Degrees{{1, 1}, {1, 2}, {1, 4}, {2, 1}, {2, 2}, {4, 1}}));
  model.n_shared_experts = 1;
  model.moe_intermediate_size = 7;
  EXPECT_EQ(degrees_of(), (Degrees{{1, 1}, {1, 2}, {1, 4}}));
}

// One pipeline rank has one stage: the recipe's two are for layouts with more ranks.
TEST(Enumerate, VirtualStagesNeedAPipeline) {
  recipe::Parallel fixed;
  fixed.num_virtual = 2;
  const auto legal = enumerate({4, 8, fixed}).legal;
  EXPECT_FALSE(legal.empty());
  for (const auto& layout : legal) EXPECT_GT(layout.pp, 1) << mesh::to_string(layout);
}

TEST(WhyRecompute, ComparesWithTheSameLayoutThatKeepsAll) {
  constexpr auto stash = static_cast<std::size_t>(program::MemoryClass::kStash);
  Ranking ranking{"one", std::vector<Candidate>(3), {}};
  for (Candidate& one : ranking.ranked) one.layout.dp = 2;
  Candidate &first = ranking.ranked[0], &whole = ranking.ranked[2];
  ranking.ranked[1].layout.micro_batch = 2;
  first.predicted.step_s = 1.02, first.bytes[stash] = Bytes{7 << 20};
  whole.predicted.step_s = 1, whole.bytes[stash] = Bytes{10 << 20};
  EXPECT_EQ(why_recompute(ranking), "");
  first.layout.recompute = recipe::Recompute::kSelective;
  EXPECT_EQ(why_recompute(ranking),
            "selective: 3 MiB less a rank than dp2 mb1x1, for 2.0 % of its step");
  ranking.ranked.pop_back();
  ranking.rejected = {{{.dp = 2}, "more memory than a rank may have", "needs 9 MiB of 8", 1}};
  EXPECT_EQ(why_recompute(ranking),
            "selective: dp2 mb1x1 is out: more memory than a rank may have (needs 9 MiB of 8)");
}

TEST(Summarize, CountsByReasonAndFindsTheNearest) {
  std::vector<Rejected> rejected(3);
  rejected[0] = {{}, "too large", "far", 9};
  rejected[1] = {{}, "other", "once", 1};
  rejected[2] = {{}, "too large", "near", 2};
  const auto out = summarize(rejected);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].reason, "too large");
  EXPECT_EQ(out[0].count, 2);
  EXPECT_EQ(out[0].nearest, "mb1x1: near");
  EXPECT_EQ(out[1].count, 1);
}

RC_GTEST_PROP(EnumerateProperties, EveryLayoutOnceAndCorrect, ()) {
  const int ranks = *rc::gen::inRange(1, 17);
  const auto rows = *rc::gen::inRange<std::int64_t>(1, 65);
  const auto all = enumerate({ranks, rows, {}});
  std::set<std::string> names;
  for (const auto& layout : all.legal) {
    RC_ASSERT(layout.num_ranks() == ranks);
    RC_ASSERT(layout.micro_batch * layout.num_micro_batches * layout.num_data_ranks() == rows);
    RC_ASSERT(names.insert(name_of(layout)).second);
  }
}

}  // namespace
}  // namespace ptrain::plan
