#include <gtest/gtest.h>

#include "core/schedule/catalogue.h"
#include "core/schedule/simulate.h"
#include "tests/support/order_files.h"

namespace ptrain::schedule {
namespace {

Problem waves(int ranks, int stages, int micro_batches) {
  return {
      .num_ranks = ranks, .num_virtual = stages, .num_micro_batches = micro_batches, .costs = {}};
}

TEST(Hanayo, IsTheOrderOfRanksThatNeverWait) {
  EXPECT_EQ(test::order_text(make("hanayo", waves(4, 2, 4)).value()),
            test::order_text(test::read_order("hanayo_w1_p4_v2_m4.csv")));
  EXPECT_EQ(test::order_text(make("hanayo", waves(4, 4, 4)).value()),
            test::order_text(test::read_order("hanayo_w2_p4_v4_m4.csv")));
}

TEST(Hanayo, DoesNotDependOnCosts) {
  Problem problem = waves(4, 4, 6);
  const Schedule even = make("hanayo", problem).value();
  problem.costs = {.forward = 7, .backward_input = 1, .backward_weight = 2, .communication = 5};
  EXPECT_EQ(make("hanayo", problem).value(), even);
}

// No order on waves is shorter than the fill and drain of their first and last chunk.
TEST(Hanayo, StaysAboveItsBound) {
  for (const int p : {2, 4, 5})
    for (const int waves_of : {1, 2, 3}) {
      const Problem problem = waves(p, 2 * waves_of, p);
      const auto schedule = make("hanayo", problem).value();
      const auto run = simulate(schedule, uniform_timing(schedule, problem.costs)).value();
      const double work = 3.0 * 2 * waves_of * p;
      EXPECT_GE(run.makespan, work + 3 * (p - 1)) << p << " " << waves_of;
      EXPECT_LE(run.makespan, work + 5 * (p - 1)) << p << " " << waves_of;
    }
}

TEST(Hanayo, RefusesHalfAWave) {
  const auto schedule = make("hanayo", waves(4, 3, 4));
  ASSERT_FALSE(schedule);
  EXPECT_EQ(schedule.error().hint, "nearest that works: 2 virtual stages a rank");
}

}  // namespace
}  // namespace ptrain::schedule
