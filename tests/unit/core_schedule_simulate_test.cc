#include <gtest/gtest.h>

#include "core/schedule/simulate.h"
#include "tests/support/order_files.h"

// tests/fixtures/schedule/summary.csv: what orders take under several costs, computed by others.
namespace ptrain::schedule {
namespace {

using Row = std::map<std::string, std::string>;

double number(const std::string& text) { return text.empty() ? 0 : std::stod(text); }

std::vector<double> numbers(const std::string& text) {
  std::istringstream words(text);
  std::vector<double> values;
  for (double value = 0; words >> value;) values.push_back(value);
  return values;
}

Timing timing_of(const Row& row, const Schedule& order) {
  Timing timing = uniform_timing(order, {.forward = number(row.at("TF")),
                                         .backward_input = number(row.at("TB")),
                                         .backward_weight = number(row.at("TW")),
                                         .communication = number(row.at("Tcomm")),
                                         .overlapped = number(row.at("TFB"))});
  const std::string uneven = "uneven: per-stage multiplier ";
  if (!row.at("note").starts_with(uneven)) return timing;
  const auto factors = numbers(row.at("note").substr(uneven.size()));
  for (std::size_t stage = 0; stage < factors.size(); ++stage) {
    StageCost& cost = timing.stages[stage];
    cost = {cost.forward * factors[stage], cost.backward_input * factors[stage],
            cost.backward_weight * factors[stage]};
  }
  return timing;
}

template <class Of>
std::vector<double> of_ranks(const Simulation& simulation, Of of) {
  std::vector<double> values;
  for (const RankSimulation& rank : simulation.ranks) values.push_back(of(rank));
  return values;
}

void expect_row(const Row& row, const Simulation& got) {
  EXPECT_NEAR(got.makespan, number(row.at("makespan")), 1e-9);
  EXPECT_NEAR(got.busy_max, number(row.at("busy_max")), 1e-9);
  EXPECT_NEAR(got.span_max, number(row.at("span_max")), 1e-9);
  EXPECT_NEAR(got.bubble, number(row.at("bubble_frac")), 1e-6);
  EXPECT_EQ(of_ranks(got, [](const auto& rank) { return rank.peak.weight; }),
            numbers(row.at("peak_act_per_rank")));
  EXPECT_EQ(of_ranks(got, [](const auto& rank) { return rank.peak.input; }),
            numbers(row.at("peak_act_I_per_rank")));
  EXPECT_EQ(of_ranks(got, [](const auto& rank) { return rank.peak.half; }),
            numbers(row.at("peak_act_half_per_rank")));
  EXPECT_EQ(of_ranks(got, [](const auto& rank) { return rank.num_sends; }),
            numbers(row.at("p2p_send_per_rank")));
}

// The rows on vocabulary passes have work of their own.
TEST(Simulate, GivesTheKnownTotalsOfEveryOrder) {
  int rows = 0;
  for (const Row& row : test::read_table("summary.csv")) {
    if (row.at("file").starts_with("vocab_")) continue;
    SCOPED_TRACE(row.at("file") + " " + row.at("TF") + " " + row.at("Tcomm") + " " +
                 row.at("note"));
    const Schedule order = test::read_order(row.at("file"));
    const auto got = simulate(order, timing_of(row, order));
    ASSERT_TRUE(got) << got.error().message;
    expect_row(row, *got);
    ++rows;
  }
  EXPECT_GE(rows, 300);
}

// The order files give the start and the end of each cell for unit costs.
TEST(Simulate, GivesTheKnownTimesOfEveryCell) {
  const std::string file = "zbv_p4_v2_m8.csv";
  const Schedule order = test::read_order(file);
  const auto got = simulate(order, uniform_timing(order, {}));
  ASSERT_TRUE(got);
  std::vector<Span> expected;
  for (const Row& row : test::read_table(file))
    expected.push_back({number(row.at("start")), number(row.at("end"))});
  std::vector<Span> all;
  for (const auto& rank : got->ranks) all.insert(all.end(), rank.spans.begin(), rank.spans.end());
  EXPECT_EQ(all, expected);
}

TEST(Simulate, RefusesWhatHangs) {
  Schedule order{.num_stages = 2, .num_micro_batches = 2, .num_slices = 1, .ranks = {}};
  const auto cell = [](Work work, int stage, int micro_batch) {
    return Cell{.work = work, .stage = stage, .micro_batch = micro_batch};
  };
  order.ranks = {{cell(Work::kForward, 0, 0), cell(Work::kBackward, 0, 0),
                  cell(Work::kForward, 0, 1), cell(Work::kBackward, 0, 1)},
                 {cell(Work::kForward, 1, 0), cell(Work::kForward, 1, 1),
                  cell(Work::kBackward, 1, 0), cell(Work::kBackward, 1, 1)}};
  const auto got = simulate(order, uniform_timing(order, {}));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().message,
            "the schedule hangs: rank 0 at 0B0 (cell 2) waits for 1B0 of rank 1, rank 1 at 1F1 "
            "(cell 2) waits for 0F1 of rank 0");
}

}  // namespace
}  // namespace ptrain::schedule
