#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "core/schedule/simulate.h"
#include "tests/support/order_files.h"

// Orders that ptrain neither makes nor runs, on its clock; docs/schedules.md says why. Sliced,
// grouped and overlapped ones are with the rest in core_schedule_simulate_test.cc.
namespace ptrain::schedule {
namespace {

Simulation run(const Schedule& order, const Costs& costs = {}) {
  return simulate(order, uniform_timing(order, costs)).value();
}

// Updates of the weights of a rank that came before each of its cells, one after every `every`
// backwards.
std::vector<int> updates_before(const std::vector<Cell>& cells, int every) {
  std::vector<int> updates;
  int backwards = 0;
  for (const Cell& cell : cells) {
    updates.push_back(backwards / every);
    if (cell.work == Work::kBackward) ++backwards;
  }
  return updates;
}

struct Asynchronous {
  std::string name;  // in async_summary.csv
  std::string file;
  int every = 1;  // micro-batches of an update
  // The version that a forward takes, from its micro-batch and the updates before it.
  std::function<int(int, int)> version;
  bool stashes = true;  // for its backward; otherwise that takes the newest
};

const std::function<int(int, int)> kNewest = [](int, int updates) { return updates; };

std::vector<Asynchronous> asynchronous() {
  std::vector<Asynchronous> all = {
      {"pipedream", "pipedream_p4_n12.csv", 1, kNewest, true},
      {"pipedream_2bw", "pipedream_2bw_p4_n16_K4.csv", 4,
       [](int micro_batch, int) { return std::max(0, micro_batch / 4 - 1); }, true},
      {"paci", "paci_p4_n32.csv", 1, kNewest, false}};
  for (const int every : {2, 3, 4, 8})
    all.push_back(
        {"paci", "paci_p4_n32_K" + std::to_string(every) + ".csv", every, kNewest, false});
  return all;
}

// What a rank's list comes to under a rule for versions.
struct Versions {
  std::vector<int> used;  // cell by cell
  std::vector<int> newest;
  int most_alive = 0;
  int delay = 0;  // updates since the version of a micro-batch's F, at its B
};

Versions versions_of(const std::vector<Cell>& cells, const Asynchronous& rule) {
  Versions versions;
  versions.newest = updates_before(cells, rule.every);
  std::map<int, std::size_t> forwards;  // in flight
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const int micro_batch = cells[i].micro_batch;
    const int newest = versions.newest[i];
    const bool forward = cells[i].work == Work::kForward;
    if (forward) forwards[micro_batch] = i;
    const std::size_t of = forwards.at(micro_batch);
    const bool takes_stash = !forward && rule.stashes;
    versions.used.push_back(forward       ? rule.version(micro_batch, newest)
                            : takes_stash ? versions.used[of]
                                          : newest);
    std::set<int> alive = {newest};
    for (const auto& [other, at] : forwards)
      if (rule.stashes) alive.insert(versions.used[at]);
    versions.most_alive = std::max(versions.most_alive, static_cast<int>(alive.size()));
    if (forward) continue;
    versions.delay = std::max(versions.delay, newest - versions.used[of]);
    forwards.erase(micro_batch);
  }
  return versions;
}

TEST(Foreign, AsynchronousOrdersHaveTheKnownVersions) {
  for (const auto& rule : asynchronous()) {
    SCOPED_TRACE(rule.file);
    const Schedule order = test::read_order(rule.file);
    std::vector<Versions> versions;
    for (const auto& cells : order.ranks) versions.push_back(versions_of(cells, rule));
    for (const auto& row : test::read_table(rule.file)) {
      const auto& of = versions[std::stoul(row.at("rank"))];
      const auto step = std::stoul(row.at("step"));
      EXPECT_EQ(of.used[step], std::stoi(row.at("version_used"))) << step;
      EXPECT_EQ(of.newest[step], std::stoi(row.at("latest_version"))) << step;
    }
    for (const auto& row : test::read_table("async_summary.csv")) {
      if (row.at("schedule") != rule.name) continue;
      if (std::stoi(row.at("microbatches_per_update")) != rule.every) continue;
      const auto& of = versions[std::stoul(row.at("rank"))];
      EXPECT_EQ(of.delay, std::stoi(row.at("max_updates_between_F_and_B")));
      EXPECT_EQ(of.most_alive, std::stoi(row.at("weight_versions_alive")));
    }
  }
}

// Published: p - r stashes, and no bubble between the fill and the drain, which a run has once.
TEST(Foreign, AsynchronousOrdersKeepRanksBusy) {
  for (const auto& rule : asynchronous())
    for (const Costs costs : {Costs{}, Costs{10, 11, 7, 0, 0}}) {
      const Schedule order = test::read_order(rule.file);
      const Simulation result = run(order, costs);
      const double both = costs.forward + costs.backward_input + costs.backward_weight;
      const int p = order.num_ranks();
      EXPECT_DOUBLE_EQ(result.makespan, (order.num_micro_batches + p - 1) * both) << rule.file;
      for (int rank = 0; rank < p; ++rank)
        EXPECT_EQ(result.ranks[static_cast<std::size_t>(rank)].peak.weight, p - rank);
    }
}

// K tasks on p ranks in turns, m < p micro-batches: K/p rounds of p, and the way of the last.
TEST(Foreign, RoundPipeTakesTheKnownTime) {
  const std::string file = "roundpipe_p4_tasks12_m3.csv";
  const Simulation result = run(test::read_order(file));
  EXPECT_EQ(result.makespan, 12 / 4 * 4 + (4 - 1) - (4 - 3));
  std::vector<Span> expected;
  for (const auto& row : test::read_table(file))
    expected.push_back({std::stod(row.at("start")), std::stod(row.at("end"))});
  std::vector<Span> spans;
  for (const auto& rank : result.ranks)
    spans.insert(spans.end(), rank.spans.begin(), rank.spans.end());
  EXPECT_EQ(spans, expected);
}

// The rows of free vocabulary passes: without them the lists take the known time and memory.
TEST(Foreign, VocabularyParallelOrdersTakeTheKnownTimeBesideTheirPasses) {
  int rows = 0;
  for (const auto& line : test::read_totals()) {
    if (!line.schedule.starts_with("vocab_parallel") || !line.note.starts_with("TS=0 ")) continue;
    const Simulation result = run(test::read_order(line.file), line.problem.costs);
    EXPECT_EQ(result.makespan, line.makespan) << line.file;
    std::string peaks;
    for (const auto& rank : result.ranks)
      peaks += (peaks.empty() ? "" : " ") + std::to_string(static_cast<int>(rank.peak.weight));
    EXPECT_EQ(peaks, line.peaks);
    ++rows;
  }
  EXPECT_EQ(rows, 2);
}

}  // namespace
}  // namespace ptrain::schedule
