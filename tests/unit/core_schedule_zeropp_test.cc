#include <gtest/gtest.h>

#include "core/schedule/catalogue.h"
#include "core/schedule/simulate.h"
#include "tests/support/order_files.h"

namespace ptrain::schedule {
namespace {

Problem problem_of(int ranks, int stages, int micro_batches) {
  return {
      .num_ranks = ranks, .num_virtual = stages, .num_micro_batches = micro_batches, .costs = {}};
}

Simulation run(const Schedule& schedule) {
  return simulate(schedule, uniform_timing(schedule, {})).value();
}

// By hand from the rule: units breadth-first, weight gradients where ranks wait.
TEST(ZeroPp, RunsUnitsBreadthFirst) {
  EXPECT_EQ(test::order_text(make("zeropp", problem_of(2, 2, 4)).value()),
            " 0F0 0F1 2F0 2F1 2I0 2I1 0I0 0I1 0F2 0F3 2F2 2F3 2W0 2W1 0W0 0W1"
            " 2I2 2I3 0I2 0I3 2W2 2W3 0W2 0W3\n"
            " 1F0 1F1 3F0 3F1 3I0 3I1 1I0 1I1 3W0 3W1 1W0 1W1 1F2 1F3 3F2 3F3"
            " 3I2 3I3 1I2 1I3 3W2 3W3 1W2 1W3\n");
}

// A stage's parameters are wanted twice in a unit: its forwards and its backwards are runs.
TEST(ZeroPp, WantsParametersTwiceInAUnit) {
  Problem problem = problem_of(4, 2, 12);
  problem.group = 6;
  const Schedule schedule = make("zeropp", problem).value();
  for (const auto& cells : schedule.ranks) {
    int gathers = 0;
    int held = -1;
    for (const Cell& cell : cells) {
      if (cell.work == Work::kBackwardWeight) continue;
      const int wanted = 2 * cell.stage + (cell.work == Work::kForward ? 0 : 1);
      if (wanted != held) ++gathers;
      held = wanted;
    }
    EXPECT_EQ(gathers, 2 * 2 * 2);  // stages, directions, units
  }
}

// One unit of all is breadth-first; each unit more costs at most a fill and a drain, less what
// weight gradients fill.
TEST(ZeroPp, FillsTheBordersOfUnits) {
  const int p = 4;
  for (const int v : {1, 2}) {
    Problem problem = problem_of(p, v, 16);
    problem.group = 16;
    const double whole = run(make("zeropp", problem).value()).makespan;
    EXPECT_DOUBLE_EQ(whole, 3.0 * 16 * v + 2 * (p - 1));
    problem.group = 4;
    const Simulation units = run(make("zeropp", problem).value());
    EXPECT_LT(units.makespan, whole + 3 * 2 * (p - 1)) << v;
    for (const auto& rank : units.ranks) EXPECT_LE(rank.peak.weight, 2 * 4 * v);
  }
}

}  // namespace
}  // namespace ptrain::schedule
