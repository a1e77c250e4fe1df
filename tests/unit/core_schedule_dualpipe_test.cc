#include <gtest/gtest.h>

#include "core/schedule/catalogue.h"
#include "core/schedule/simulate.h"
#include "tests/support/order_files.h"

namespace ptrain::schedule {
namespace {

Problem problem_of(int ranks, int micro_batches) {
  return {.num_ranks = ranks, .num_virtual = 2, .num_micro_batches = micro_batches, .costs = {}};
}

std::string told(const Problem& problem) {
  const auto schedule = make("dualpipe", problem);
  return schedule ? "" : schedule.error().message + "; " + schedule.error().hint;
}

TEST(DualPipe, IsTheOrderThatWasPublished) {
  EXPECT_EQ(test::order_text(make("dualpipe", problem_of(4, 8)).value()),
            test::order_text(test::read_order("dualpipe_p4_v2_m8.csv")));
  EXPECT_EQ(test::order_text(make("dualpipe", problem_of(4, 12)).value()),
            test::order_text(test::read_order("dualpipe_p4_v2_m12.csv")));
}

// The published time: (m/2 - p/2) rounds of two pairs less one, the fill and drain, and a bubble of
// (p/2-1)(FB + B - 3W). Exact where F costs as much as I.
TEST(DualPipe, TakesThePublishedTime) {
  for (const int p : {2, 4, 6, 8})
    for (const int m : {2 * p, 2 * p + 2, 20})
      for (const double pair : {2.0, 2.5, 3.0}) {
        if (m < 2 * p) continue;
        Problem problem = problem_of(p, m);
        problem.costs.overlapped = pair;
        const auto schedule = make("dualpipe", problem).value();
        const double active = (m - p - 1) * pair + (p + 1) * 3;
        const double bubble = (p / 2 - 1) * (pair + 2 - 3);
        const auto run = simulate(schedule, uniform_timing(schedule, problem.costs)).value();
        EXPECT_DOUBLE_EQ(run.makespan, active + bubble) << p << " " << m << " " << pair;
        for (const auto& rank : run.ranks) EXPECT_EQ(rank.peak.weight, p + 1);
      }
}

TEST(DualPipe, RefusesWhatItsDirectionsCannotShare) {
  EXPECT_EQ(told(problem_of(3, 12)),
            "schedule dualpipe has 3 ranks, an odd number; nearest that works: 4 ranks");
  EXPECT_EQ(told(problem_of(4, 9)),
            "schedule dualpipe has 9 micro-batches, not an even number of at least twice its 4 "
            "ranks; nearest that works: 8 micro-batches");
  EXPECT_EQ(told(problem_of(4, 4)),
            "schedule dualpipe has 4 micro-batches, not an even number of at least twice its 4 "
            "ranks; nearest that works: 8 micro-batches");
}

}  // namespace
}  // namespace ptrain::schedule
