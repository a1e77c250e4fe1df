#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "core/schedule/catalogue.h"
#include "core/schedule/check.h"
#include "core/schedule/csv.h"
#include "core/schedule/simulate.h"
#include "tests/support/random_schedule.h"

namespace ptrain::schedule {
namespace {

int up_to(int most, std::mt19937& random) {
  return 1 + static_cast<int>(random() % static_cast<unsigned>(most));
}

Costs random_costs(std::mt19937& random) {
  return {.forward = static_cast<double>(up_to(9, random)),
          .backward_input = static_cast<double>(up_to(9, random)),
          .backward_weight = static_cast<double>(up_to(9, random)),
          .communication = static_cast<double>(up_to(5, random) - 1)};
}

Problem random_problem(const Entry& entry, std::mt19937& random) {
  const VirtualRule& rule = entry.num_virtual;
  const int most = rule.most == 0 ? rule.least + 3 * rule.step : rule.most;
  const int choices = (most - rule.least) / rule.step + 1;
  return {.num_ranks = up_to(8, random),
          .num_virtual = rule.least + rule.step * (up_to(choices, random) - 1),
          .num_micro_batches = up_to(20, random),
          .costs = random_costs(random)};
}

std::string text_of(const Entry& entry, const Problem& problem) {
  return std::string(entry.name) + " p" + std::to_string(problem.num_ranks) + " v" +
         std::to_string(problem.num_virtual) + " m" + std::to_string(problem.num_micro_batches);
}

void expect_runs(const Schedule& schedule, const Costs& costs, const std::string& text) {
  const auto status = check(schedule);
  ASSERT_TRUE(status) << text << ": " << status.error().message;
  const auto simulation = simulate(schedule, uniform_timing(schedule, costs));
  ASSERT_TRUE(simulation) << text;
  EXPECT_GE(simulation->makespan, simulation->busy_max) << text;
}

// Searching takes long, and is tried on less.
TEST(RandomProblems, GiveSchedulesThatRun) {
  std::mt19937 random(7);
  for (const Entry& entry : catalogue()) {
    const bool searches = entry.name.ends_with("_auto");
    int made = 0;
    for (int i = 0; i < (searches ? 4 : 150); ++i) {
      Problem problem = random_problem(entry, random);
      if (searches) problem.num_micro_batches = (problem.num_micro_batches + 1) / 2;
      const auto schedule = make(entry.name, problem);
      if (!schedule) {
        EXPECT_NE(entry.constraint, "") << schedule.error().message;
        EXPECT_TRUE(schedule.error().hint.starts_with("nearest that works: "));
        continue;
      }
      expect_runs(*schedule, problem.costs, text_of(entry, problem));
      ++made;
    }
    EXPECT_GE(made, searches ? 4 : 10) << entry.name;
  }
}

TEST(RandomProblems, GiveSchedulesWithWeightsLastThatRun) {
  std::mt19937 random(8);
  for (const Entry& entry : catalogue()) {
    if (entry.name.ends_with("_auto")) continue;
    for (int i = 0; i < 20; ++i) {
      const Problem problem = random_problem(entry, random);
      const auto schedule = make(std::string(entry.name) + "_2bp", problem);
      if (schedule) expect_runs(*schedule, problem.costs, text_of(entry, problem) + " 2bp");
    }
  }
}

test::RandomSchedule random_sizes(std::mt19937& random) {
  return {.num_ranks = up_to(8, random),
          .num_virtual = up_to(3, random),
          .num_micro_batches = up_to(6, random),
          .num_slices = up_to(2, random)};
}

TEST(RandomSchedules, NeverHang) {
  std::mt19937 random(9);
  for (int i = 0; i < 2000; ++i) {
    const Schedule schedule = test::random_legal(random_sizes(random), random);
    expect_runs(schedule, random_costs(random), "schedule " + std::to_string(i));
    const auto back = from_csv(to_csv(schedule), "");
    ASSERT_TRUE(back);
    EXPECT_EQ(*back, schedule);
  }
}

// The plainest executor there is: over and over, whatever rank can go on does.
bool runs_to_its_end(const Schedule& schedule) {
  using Key =
      std::tuple<int, int, int, int>;  // kind (0 F, 1 B or I, 2 W), stage, micro-batch, slice
  const auto kind = [](Work work) {
    return work == Work::kForward ? 0 : work == Work::kBackwardWeight ? 2 : 1;
  };
  std::set<Key> all, done;
  for (const auto& cells : schedule.ranks)
    for (const Cell& cell : cells)
      all.insert({kind(cell.work), cell.stage, cell.micro_batch, cell.slice});
  const auto has = [&](int of, int stage, const Cell& cell, int slice) {
    const Key key{of, stage, cell.micro_batch, slice};
    return !all.contains(key) || done.contains(key);
  };
  std::vector<std::size_t> next(schedule.ranks.size());
  for (bool any = true; any;) {
    any = false;
    for (std::size_t rank = 0; rank < next.size(); ++rank) {
      if (next[rank] == schedule.ranks[rank].size()) continue;
      const Cell& cell = schedule.ranks[rank][next[rank]];
      const int of = kind(cell.work);
      const bool ready = of == 0 ? has(0, cell.stage - 1, cell, cell.slice) &&
                                       has(0, cell.stage, cell, cell.slice - 1)
                         : of == 1 ? has(0, cell.stage, cell, cell.slice) &&
                                         has(1, cell.stage + 1, cell, cell.slice) &&
                                         has(1, cell.stage, cell, cell.slice + 1)
                                   : has(1, cell.stage, cell, cell.slice);
      if (!ready) continue;
      done.insert({of, cell.stage, cell.micro_batch, cell.slice});
      ++next[rank];
      any = true;
    }
  }
  return done.size() == all.size();
}

// Two cells of a rank change places: the checker refuses the schedule if and only if it hangs.
TEST(RandomSchedules, AreRefusedIfAndOnlyIfTheyHang) {
  std::mt19937 random(10);
  std::map<bool, int> count;
  for (int i = 0; i < 1000; ++i) {
    Schedule schedule = test::random_legal(random_sizes(random), random);
    auto& cells = schedule.ranks[random() % schedule.ranks.size()];
    std::swap(cells[random() % cells.size()], cells[random() % cells.size()]);
    const bool runs = runs_to_its_end(schedule);
    EXPECT_EQ(check(schedule).has_value(), runs) << to_csv(schedule);
    ++count[runs];
  }
  EXPECT_GE(count[true], 100);
  EXPECT_GE(count[false], 100);
}

}  // namespace
}  // namespace ptrain::schedule
