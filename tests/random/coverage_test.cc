// The fixed sequence of random layouts has cases of everything that can be drawn.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "core/schedule/catalogue.h"
#include "tests/random/draw.h"
#include "tests/support/small_model.h"

namespace ptrain::random {
namespace {

constexpr std::uint64_t kSeed = 1;  // those of tests/random/CMakeLists.txt
constexpr std::int64_t kCases = 150;

const std::vector<Case>& all_cases() {
  static const std::vector<Case> cases = [] {
    std::vector<Case> drawn;
    for (std::int64_t i = 0; i < kCases; ++i)
      if (const auto one = draw(kSeed, i)) drawn.push_back(*one);
    return drawn;
  }();
  return cases;
}

int count(const std::function<bool(const Case&)>& holds) {
  return static_cast<int>(std::ranges::count_if(all_cases(), holds));
}

TEST(Coverage, EveryNumberHasALayout) {
  EXPECT_EQ(std::ssize(all_cases()), kCases);
  std::set<std::string> lines;
  for (const Case& one : all_cases()) {
    EXPECT_EQ(*from_text(to_text(one)), one);
    lines.insert(to_text(one));
  }
  EXPECT_GE(std::ssize(lines), kCases - 10);
}

TEST(Coverage, EveryScheduleOfOneCopyRuns) {
  for (const schedule::Entry& entry : schedule::catalogue()) {
    const std::string name(entry.name);
    const auto is = [&](const Case& one) {
      return one.schedule == name || one.schedule == name + "_2bp";
    };
    EXPECT_EQ(entry.num_copies == 1, count(is) > 0) << name;
  }
  EXPECT_GE(count([](const Case& one) { return one.schedule == "random"; }), 1);
  EXPECT_GE(count([](const Case& one) { return one.schedule.ends_with("_2bp"); }), 1);
}

struct Kind {
  const char* name;
  std::function<bool(const Case&)> holds;
  int least = 2;
};

bool has_cp(const Case& one) { return one.ring * one.ulysses > 1; }
bool has_experts(const Case& one) { return support::has_experts(one.family); }

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {"dp", [](const Case& one) { return one.dp > 1; }, 10},
      {"zero 2", [](const Case& one) { return one.zero == 2; }, 5},
      {"zero 3 by messages", [](const Case& one) { return one.zero == 3 && one.window == 0; }, 5},
      {"window", [](const Case& one) { return one.window != 0; }, 10},
      {"tp", [](const Case& one) { return one.tp > 1; }, 10},
      {"pp", [](const Case& one) { return one.pp > 1; }, 30},
      {"ring", [](const Case& one) { return one.ring > 1; }, 5},
      {"ulysses", [](const Case& one) { return one.ulysses > 1; }, 5},
      {"ring x ulysses", [](const Case& one) { return one.ring > 1 && one.ulysses > 1; }, 1},
      {"tp and pp", [](const Case& one) { return one.tp > 1 && one.pp > 1; }},
      {"tp and cp", [](const Case& one) { return one.tp > 1 && has_cp(one); }},
      {"pp and cp", [](const Case& one) { return one.pp > 1 && has_cp(one); }},
      {"experts and pp", [](const Case& one) { return has_experts(one) && one.pp > 1; }, 5},
      {"experts and tp", [](const Case& one) { return has_experts(one) && one.tp > 1; }},
      {"experts and cp", [](const Case& one) { return has_experts(one) && has_cp(one); }},
      {"ep", [](const Case& one) { return one.ep > 1; }, 10},
      {"etp", [](const Case& one) { return one.etp > 1; }},
      {"ep and pp", [](const Case& one) { return one.ep > 1 && one.pp > 1; }},
      {"ep, tp and cp", [](const Case& one) { return one.ep > 1 && one.tp > 1 && has_cp(one); }, 1},
      {"selective", [](const Case& one) { return one.recompute == "selective"; }, 10},
      {"full", [](const Case& one) { return one.recompute == "full"; }, 10},
      {"recompute by stage", [](const Case& one) { return !one.stage_recompute.empty(); }, 5},
      {"bf16 in some stages",
       [](const Case& one) { return one.stage_dtype.find("bf16") != std::string::npos; }, 2},
      {"own stages", [](const Case& one) { return !one.stages.empty(); }, 5},
      {"spread embedding", [](const Case& one) { return one.spread_embedding != 0; }, 10},
      {"tied and spread",
       [](const Case& one) { return one.spread_embedding != 0 && one.tied != 0; }, 3},
      {"spread head", [](const Case& one) { return one.spread_head != 0; }, 10},
      {"fp32", [](const Case& one) { return one.precision == "fp32"; }, 5},
      {"prefetch", [](const Case& one) { return one.prefetch != 1; }, 1},
  };
  return all;
}

TEST(Coverage, EveryAxisAndMixIsThere) {
  for (const Kind& kind : kinds()) EXPECT_GE(count(kind.holds), kind.least) << kind.name;
}

// Optimizers beside the axes that see parts of the model or of the rows.
TEST(Coverage, OptimizersAndOffloadMeetPipelinesAndContextRanks) {
  for (const char* optimizer : {"muon", "adam8bit", "lion", "sgd"}) {
    const auto is = [&](const Case& one) { return one.optimizer == optimizer; };
    EXPECT_GE(count([&](const Case& one) { return is(one) && one.pp > 1; }), 1) << optimizer;
    EXPECT_GE(count([&](const Case& one) { return is(one) && has_cp(one); }), 1) << optimizer;
  }
  const auto offloads = [](const Case& one) { return one.offload == "optimizer"; };
  EXPECT_GE(count([&](const Case& one) { return offloads(one) && one.pp > 1; }), 1);
  EXPECT_GE(count([&](const Case& one) { return offloads(one) && has_cp(one); }), 1);
  EXPECT_GE(count([&](const Case& one) { return offloads(one) && one.tp > 1; }), 1);
}

TEST(Coverage, EveryFamilyAndPackingIsThere) {
  std::set<std::string> families, packings;
  for (const Case& one : all_cases()) families.insert(one.family), packings.insert(one.packing);
  EXPECT_EQ(families.size(), 11u);
  EXPECT_EQ(packings.size(), 5u);
}

}  // namespace
}  // namespace ptrain::random
