#include <gtest/gtest.h>

#include <future>
#include <stdexcept>
#include <vector>

#include "engine/execute/copy_lane.h"

namespace ptrain::execute {
namespace {

TEST(CopyLane, MakesCopiesInTheirOrderBesideTheCaller) {
  std::vector<int> made;
  CopyLane lane;
  std::promise<void> gate;
  lane.push(4, [&] { gate.get_future().wait(), made.push_back(4); });
  for (const int action : {2, 7, 5}) lane.push(action, [&made, action] { made.push_back(action); });
  lane.wait(9);  // of another lane
  gate.set_value();
  lane.wait(7);
  EXPECT_GE(made.size(), 3u);
  lane.wait_all();
  EXPECT_EQ(made, (std::vector<int>{4, 2, 7, 5}));
}

TEST(CopyLane, TellsWhenACopyBeginsAndEnds) {
  std::vector<std::pair<int, bool>> told;
  CopyLane lane;
  lane.watch([&](int action, bool begins) { told.emplace_back(action, begins); });
  lane.push(1, [] {});
  lane.push(3, [] {});
  lane.wait_all();
  EXPECT_EQ(told,
            (std::vector<std::pair<int, bool>>{{1, true}, {1, false}, {3, true}, {3, false}}));
}

TEST(CopyLane, AFailureEndsAllThatFollows) {
  bool went_on = false;
  CopyLane lane;
  lane.push(1, [] { throw std::runtime_error("the disk is full"); });
  lane.push(2, [&] { went_on = true; });
  EXPECT_THROW(lane.wait(2), std::runtime_error);
  EXPECT_THROW(lane.wait_all(), std::runtime_error);
  lane.drop();
  lane.push(3, [&] { went_on = true; });
  EXPECT_THROW(lane.wait(3), std::runtime_error);
  EXPECT_FALSE(went_on);
}

TEST(CopyLane, DropsWhatIsNotBegun) {
  std::promise<void> begun, gate;
  int made = 0;
  CopyLane lane;
  lane.push(1, [&] { begun.set_value(), gate.get_future().wait(), ++made; });
  lane.push(2, [&] { ++made; });
  begun.get_future().wait();
  const auto dropped = std::async(std::launch::async, [&] { lane.drop(); });
  while (dropped.wait_for(std::chrono::milliseconds(10)) == std::future_status::ready)
    FAIL() << "a copy is under way";
  gate.set_value();
  dropped.wait();
  EXPECT_EQ(made, 1);
}

}  // namespace
}  // namespace ptrain::execute
