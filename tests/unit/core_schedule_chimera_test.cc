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

std::string made(std::string_view name, const Problem& problem) {
  const auto schedule = make(name, problem);
  return schedule ? test::order_text(*schedule) : schedule.error().message;
}

std::string told(std::string_view name, const Problem& problem) {
  const auto schedule = make(name, problem);
  return schedule ? "" : schedule.error().message + "; " + schedule.error().hint;
}

double makespan(std::string_view name, const Problem& problem) {
  const auto schedule = make(name, problem).value();
  return simulate(schedule, uniform_timing(schedule, problem.costs)).value().makespan;
}

TEST(Chimera, IsTheOrderOfItsRepository) {
  EXPECT_EQ(made("chimera", problem_of(4, 2, 4)),
            test::order_text(test::read_order("chimera_p4_v2_m4.csv")));
  EXPECT_EQ(made("chimera", problem_of(8, 2, 8)),
            test::order_text(test::read_order("chimera_p8_v2_m8.csv")));
}

TEST(Chimera, OfTwoChunksIsBitPipe) {
  EXPECT_EQ(made("bitpipe", problem_of(4, 4, 4)),
            test::order_text(test::read_order("bitpipe_p4_v4_m4.csv")));
  EXPECT_EQ(made("bitpipe", problem_of(8, 4, 8)),
            test::order_text(test::read_order("bitpipe_p8_v4_m8.csv")));
}

// The published bubble of k blocks, (p-2)(B + (k-1)(B-F)) for B >= F, in units of one stage.
TEST(Chimera, HasThePublishedBubbleOverManyBlocks) {
  for (const int p : {2, 4, 6, 8})
    for (const int k : {1, 2, 3})
      for (const Costs costs : {Costs{}, Costs{10, 11, 7, 0, 0}}) {
        const double backward = costs.backward_input + costs.backward_weight;
        const double bubble = (p - 2) * (backward + (k - 1) * (backward - costs.forward));
        Problem problem = problem_of(p, 2, k * p);
        problem.costs = costs;
        const double work = k * p * (costs.forward + backward);
        EXPECT_DOUBLE_EQ(makespan("chimera", problem), work + bubble) << p << " " << k;
        problem.num_virtual = 4;
        EXPECT_DOUBLE_EQ(makespan("bitpipe", problem), 2 * work + bubble) << p << " " << k;
      }
}

TEST(Chimera, HoldsThePublishedStashes) {
  for (const int p : {2, 4, 6, 8})
    for (const auto& [name, stages] : {std::pair{"chimera", 2}, std::pair{"bitpipe", 4}}) {
      const auto schedule = make(name, problem_of(p, stages, p)).value();
      const auto run = simulate(schedule, uniform_timing(schedule, {})).value();
      for (int rank = 0; rank < p; ++rank)
        EXPECT_EQ(run.ranks[static_cast<std::size_t>(rank)].peak.weight,
                  (stages - 1) * p / 2 + 1 + std::min(rank, p - 1 - rank))
            << name << " " << p << " " << rank;
    }
}

TEST(Chimera, RefusesWhatItsDirectionsCannotShare) {
  EXPECT_EQ(told("chimera", problem_of(3, 2, 6)),
            "schedule chimera has 3 ranks, an odd number; nearest that works: 4 ranks");
  EXPECT_EQ(told("bitpipe", problem_of(4, 4, 6)),
            "schedule bitpipe has 6 micro-batches, no multiple of its 4 ranks; nearest that works: "
            "4 micro-batches");
  EXPECT_EQ(told("chimera", problem_of(4, 2, 2)),
            "schedule chimera has 2 micro-batches, no multiple of its 4 ranks; nearest that works: "
            "4 micro-batches");
}

}  // namespace
}  // namespace ptrain::schedule
