#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/schedule/catalogue.h"
#include "core/schedule/positions.h"
#include "core/schedule/shared_work.h"
#include "core/schedule/simulate.h"
#include "tests/support/random_schedule.h"

namespace ptrain::schedule {
namespace {

std::string text_of(const std::vector<Cell>& cells) {
  std::string text;
  for (const Cell& cell : cells) text += (text.empty() ? "" : ",") + to_text(cell);
  return text;
}

Problem problem_of(int num_ranks, int num_virtual, int num_micro_batches) {
  Problem problem;
  problem.num_ranks = num_ranks;
  problem.num_virtual = num_virtual;
  problem.num_micro_batches = num_micro_batches;
  return problem;
}

Schedule made(const char* name, int num_ranks, int num_virtual, int num_micro_batches) {
  return *make(name, problem_of(num_ranks, num_virtual, num_micro_batches));
}

bool is_last_backward(const Cell& cell, const Schedule& schedule) {
  return cell.stage == schedule.num_stages - 1 &&
         (cell.work == Work::kBackward || cell.work == Work::kBackwardInput);
}

// By hand: the last rank begins B0 when F1 of the first ends, and B1 one forward after B0; the
// first would keep it waiting as long if it began its own B0 before.
TEST(SharedWork, OfTwoRanks) {
  const Schedule shared = add_shared_work(made("1f1b", 2, 1, 2));
  EXPECT_EQ(text_of(shared.ranks[0]), "0F0,0F1,1S0,1S1,0B0,0B1");
  EXPECT_EQ(text_of(shared.ranks[1]), "1F0,1B0,1F1,1B1");
}

TEST(SharedWork, OfAForwardOnlySchedule) {
  Schedule schedule{.num_stages = 2, .num_micro_batches = 2, .ranks = {{}, {}}};
  for (int m = 0; m < 2; ++m)
    for (int stage = 0; stage < 2; ++stage)
      schedule.ranks[static_cast<std::size_t>(stage)].push_back({.stage = stage, .micro_batch = m});
  const Schedule shared = add_shared_work(schedule);
  EXPECT_EQ(text_of(shared.ranks[0]), "0F0,1S0,0F1,1S1");
  EXPECT_EQ(text_of(shared.ranks[1]), "1F0,1F1");
}

// Runs the lists: where the last stage goes back all ranks must stand at the same S, and all take
// `share_cost` for it.
class Replay {
 public:
  Replay(const Schedule& schedule, double share_cost)
      : schedule_(schedule),
        positions_(schedule),
        share_cost_(share_cost),
        ends_(schedule.ranks.size()),
        free_(schedule.ranks.size(), 0) {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < ends_.size(); ++rank)
        while (step(rank)) moved = true;
    }
  }

  // Empty: all lists end.
  std::string stuck_at() const {
    for (std::size_t rank = 0; rank < ends_.size(); ++rank)
      if (cell_of(rank) != nullptr) return std::to_string(rank) + " at " + to_text(*cell_of(rank));
    return "";
  }
  double makespan() const { return *std::ranges::max_element(free_); }

 private:
  const Cell* cell_of(std::size_t rank) const {
    const auto& cells = schedule_.ranks[rank];
    return ends_[rank].size() == cells.size() ? nullptr : &cells[ends_[rank].size()];
  }

  bool step(std::size_t rank) {
    const Cell* cell = cell_of(rank);
    if (cell == nullptr || cell->work == Work::kShared) return false;
    double begin = free_[rank];
    for (const Position& need : positions_.needs(*cell)) {
      const auto& ends = ends_[static_cast<std::size_t>(need.rank)];
      if (static_cast<std::size_t>(need.step) >= ends.size()) return false;
      begin = std::max(begin, ends[static_cast<std::size_t>(need.step)]);
    }
    if (is_last_backward(*cell, schedule_) && !meet(*cell, rank, begin)) return false;
    free_[rank] = begin + (cell->work == Work::kBackward ? 2 : 1);
    ends_[rank].push_back(free_[rank]);
    return true;
  }

  bool meet(const Cell& last, std::size_t its_rank, double& begin) {
    for (std::size_t rank = 0; rank < ends_.size(); ++rank) {
      const Cell* cell = cell_of(rank);
      const bool meets = cell != nullptr && cell->work == Work::kShared &&
                         cell->micro_batch == last.micro_batch && cell->stage == last.stage;
      if (rank != its_rank && !meets) return false;
    }
    begin = std::max(begin, *std::ranges::max_element(free_)) + share_cost_;
    std::ranges::fill(free_, begin);
    for (std::size_t rank = 0; rank < ends_.size(); ++rank)
      if (rank != its_rank) ends_[rank].push_back(begin);
    return true;
  }

  const Schedule& schedule_;
  Positions positions_;
  double share_cost_;
  std::vector<std::vector<double>> ends_;
  std::vector<double> free_;
};

void expect_shared(const Schedule& schedule, const std::string& name) {
  Schedule shared = add_shared_work(schedule);
  EXPECT_EQ(Replay(shared, 1).stuck_at(), "") << name;
  const int last = ranks_of_stages(schedule).back();
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    auto& cells = shared.ranks[static_cast<std::size_t>(rank)];
    const auto shares =
        std::erase_if(cells, [](const Cell& cell) { return cell.work == Work::kShared; });
    EXPECT_EQ(shares, rank == last ? 0u : static_cast<std::size_t>(schedule.num_micro_batches));
  }
  EXPECT_EQ(shared, schedule) << "nothing else changes in " << name;
}

TEST(SharedWork, OfEachScheduleIsOnceAMicroBatchAndEnds) {
  for (const Entry& entry : catalogue()) {
    if (entry.num_copies != 1 || std::string_view(entry.name).ends_with("_auto")) continue;
    for (const int num_ranks : {2, 3, 4, 8})
      for (const int num_micro_batches : {1, 4, 8, 17}) {
        const auto schedule =
            make(entry.name, problem_of(num_ranks, entry.num_virtual.least, num_micro_batches));
        if (schedule) expect_shared(*schedule, std::string(entry.name));
      }
  }
}

TEST(SharedWork, OfAnyLegalOrderEnds) {
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    const test::RandomSchedule sizes{.num_ranks = 2 + static_cast<int>(random() % 7),
                                     .num_virtual = 1 + static_cast<int>(random() % 3),
                                     .num_micro_batches = 1 + static_cast<int>(random() % 6)};
    expect_shared(test::random_legal(sizes, random), "a random order");
  }
}

// What S costs is added, but nobody waits for anybody else than without it: for forwards, and both
// halves of backwards, of the same length.
TEST(SharedWork, KeepsNobodyWaitingInMostSchedules) {
  struct Named {
    const char* name;
    int num_virtual;
  };
  for (const Named& named : {Named{"gpipe", 1},
                             {"eager_1f1b", 1},
                             {"zb_h1", 1},
                             {"zb_h2", 1},
                             {"interleaved_1f1b", 2},
                             {"breadth_first", 2},
                             {"zb_v", 2},
                             {"v_half", 2}})
    for (const auto& [num_ranks, num_micro_batches] : {std::pair{4, 16}, std::pair{8, 32}}) {
      const Schedule schedule = made(named.name, num_ranks, named.num_virtual, num_micro_batches);
      const double alone = simulate(schedule, uniform_timing(schedule, {}))->makespan;
      for (const double cost : {0.2, 0.75})
        EXPECT_NEAR(Replay(add_shared_work(schedule), cost).makespan(),
                    alone + num_micro_batches * cost, 1e-9)
            << named.name << " on " << num_ranks;
    }
}

}  // namespace
}  // namespace ptrain::schedule
