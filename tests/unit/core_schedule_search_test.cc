#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "core/schedule/catalogue.h"
#include "core/schedule/check.h"
#include "core/schedule/simulate.h"
#include "tests/support/order_files.h"

namespace ptrain::schedule {
namespace {

double largest_of(const std::string& numbers) {
  std::istringstream text(numbers);
  double largest = 0;
  for (double number = 0; text >> number;) largest = std::max(largest, number);
  return largest;
}

// The cap in a file's name; 0: none.
double cap_of(const std::string& file) {
  const auto at = file.find("_mem");
  return at == std::string::npos ? 0 : std::stod(file.substr(at + 4));
}

struct Found {
  double makespan = 0;
  double peak = 0;
};

Found find(std::string_view name, const Problem& problem) {
  const auto schedule = make(name, problem).value();
  EXPECT_TRUE(check(schedule)) << name;
  const auto run = simulate(schedule, uniform_timing(schedule, problem.costs)).value();
  Found found{.makespan = run.makespan};
  for (const auto& rank : run.ranks) found.peak = std::max(found.peak, rank.peak.weight);
  return found;
}

// The searches of others, and what they made of other costs than they were for.
TEST(Search, IsNoWorseThanThePublishedOrders) {
  int tried = 0;
  for (const auto& line : test::read_totals()) {
    const bool straight = line.schedule.starts_with("sail_zb_auto");
    const bool v =
        line.schedule.starts_with("sail_zbv_auto") || line.schedule.starts_with("v_auto");
    if (!straight && !v) continue;
    Problem problem = line.problem;
    const double peak = largest_of(line.peaks);
    problem.memory_cap = cap_of(line.file) > 0 ? std::min(cap_of(line.file), peak) : peak;
    const Found found = find(straight ? "zb_auto" : "v_auto", problem);
    EXPECT_LE(found.makespan, line.makespan) << line.file << " hop " << problem.costs.communication;
    EXPECT_LE(found.peak, peak) << line.file;
    ++tried;
  }
  EXPECT_EQ(tried, 7 + 2 + 12);
}

// What the V-family's own search comes to on 4 ranks, 8 micro-batches and unit costs. Under a cap
// of M stashes it leaves a bubble of 3p-1-3M + max(3p, p-1+2(1+ceil(M/2))) in the longest rank.
TEST(Search, ReachesTheVFamilyUnderEachCap) {
  const std::map<int, double> published = {{4, 59}, {5, 56}, {6, 53}, {7, 52}, {8, 51}};
  for (const auto& [cap, makespan] : published) {
    Problem problem{.num_ranks = 4, .num_virtual = 2, .num_micro_batches = 8, .costs = {}};
    problem.memory_cap = cap;
    EXPECT_LE(find("v_auto", problem).makespan, makespan) << cap;
  }
}

TEST(Search, IsNoLongerThanAFixedOrderThatFits) {
  for (const auto& [name, fixed] : {std::pair{"zb_auto", "zb_h2"}, std::pair{"v_auto", "v_half"}}) {
    Problem problem{.num_ranks = 6,
                    .num_virtual = fixed == std::string("zb_h2") ? 1 : 2,
                    .num_micro_batches = 12,
                    .costs = {.forward = 3, .backward_input = 5, .backward_weight = 4}};
    const Found known = find(fixed, problem);
    problem.memory_cap = known.peak;
    EXPECT_LE(find(name, problem).makespan, known.makespan) << name;
  }
}

TEST(Search, FindsTheSameAgain) {
  const Problem problem{.num_ranks = 4,
                        .num_virtual = 2,
                        .num_micro_batches = 6,
                        .costs = {.forward = 10, .backward_input = 11, .backward_weight = 7},
                        .memory_cap = 5};
  EXPECT_EQ(make("v_auto", problem).value(), make("v_auto", problem).value());
}

TEST(Search, KeepsAnyCapThatHoldsEachStageOnce) {
  for (const auto& [name, stages] : {std::pair{"zb_auto", 1}, std::pair{"v_auto", 2}})
    for (const int p : {1, 2, 5})
      for (int cap = stages; cap < 5; ++cap) {
        Problem problem{.num_ranks = p, .num_virtual = stages, .num_micro_batches = 4, .costs = {}};
        problem.memory_cap = cap;
        EXPECT_LE(find(name, problem).peak, cap) << name << " " << p << " " << cap;
      }
}

TEST(Search, RefusesACapWithoutRoom) {
  const auto schedule = make(
      "v_auto",
      {.num_ranks = 2, .num_virtual = 2, .num_micro_batches = 4, .costs = {}, .memory_cap = 1.5});
  ASSERT_FALSE(schedule);
  EXPECT_EQ(schedule.error().message, "schedule v_auto cannot run under a memory cap of 1.5");
  EXPECT_EQ(schedule.error().hint, "nearest that works: a cap of 2");
}

TEST(Search, RefusesWhatWouldTakeTooLong) {
  const auto schedule =
      make("zb_auto", {.num_ranks = 100, .num_virtual = 1, .num_micro_batches = 4000, .costs = {}});
  ASSERT_FALSE(schedule);
  EXPECT_EQ(schedule.error().message, "schedule zb_auto would search 1200000 cells");
}

}  // namespace
}  // namespace ptrain::schedule
