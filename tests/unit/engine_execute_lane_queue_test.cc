#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "engine/execute/lane_queue.h"

namespace ptrain::execute {
namespace {

// A collective that is done when it is told.
class Told final : public comm::Work {
 public:
  explicit Told(const bool& is_done) : is_done_(is_done) {}
  bool done() override { return is_done_; }
  void wait() override { EXPECT_TRUE(is_done_); }

 private:
  const bool& is_done_;
};

// Behind one that is under way another has not begun: polling begins it, which whoever waits for
// something else does meanwhile.
TEST(LaneQueue, PollingStartsTheNext) {
  bool first_done = false, second_done = false;
  std::string told;
  LaneQueue lane;
  lane.watch(
      [&](int action, bool begins) { told += (begins ? "b" : "e") + std::to_string(action); });
  lane.push(1, {[&] { return std::make_unique<Told>(first_done); }}, {});
  lane.push(2, {[&] { return std::make_unique<Told>(second_done); }}, {});
  lane.poll();
  EXPECT_EQ(told, "b1");
  first_done = true;
  lane.poll();
  EXPECT_EQ(told, "b1e1b2");
  second_done = true;
  lane.wait_all();
  EXPECT_EQ(told, "b1e1b2e2");
}

}  // namespace
}  // namespace ptrain::execute
