#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/base/engine_error.h"
#include "engine/layers/task.h"

namespace ptrain::layers {
namespace {

using Log = std::vector<std::string>;

// Says when it ends.
struct Guard {
  Log& log;
  std::string name;
  Guard(Log& log_of_test, std::string named) : log(log_of_test), name(std::move(named)) {}
  Guard(const Guard&) = delete;
  ~Guard() { log.push_back("end of " + name); }
};

Exchange of_kind(ExchangeKind kind) {
  return {kind, ExchangeAxis::kTensor, [](comm::Communicator&) { return nullptr; }};
}

// `value` lives in the frame until the call ends.
Task part(Log& log, std::string name, std::unique_ptr<int> value, bool throws) {
  const Guard guard(log, name);
  log.push_back(name);
  Exchange gather = of_kind(ExchangeKind::kAllGather);
  co_await exchange(std::move(gather));
  log.push_back(name + " went on with " + std::to_string(*value));
  if (throws) throw std::runtime_error(name);
}

Task inner(Log& log, bool throws) {
  const Guard guard(log, "inner");
  co_await part(log, "first", std::make_unique<int>(1), false);
  co_await part(log, "second", std::make_unique<int>(2), throws);
}

Task outer(Log& log, bool throws) {
  const Guard guard(log, "outer");
  co_await exchange(of_kind(ExchangeKind::kReduceScatter));
  co_await inner(log, throws);
  log.push_back("outer went on");
}

TEST(Task, StartsAtTheFirstResume) {
  Log log;
  {
    const Task task = outer(log, false);
    EXPECT_TRUE(log.empty());
  }
  EXPECT_TRUE(log.empty());
}

TEST(Task, RunsFromExchangeToExchangeThroughNestedParts) {
  Log log;
  Task task = outer(log, false);
  const Exchange* pending = task.resume();
  ASSERT_NE(pending, nullptr);
  EXPECT_EQ(pending->kind, ExchangeKind::kReduceScatter);
  EXPECT_TRUE(log.empty());

  pending = task.resume();
  ASSERT_NE(pending, nullptr);
  EXPECT_EQ(pending->kind, ExchangeKind::kAllGather);
  EXPECT_EQ(log, (Log{"first"}));

  pending = task.resume();
  ASSERT_NE(pending, nullptr);
  EXPECT_EQ(log, (Log{"first", "first went on with 1", "end of first", "second"}));

  EXPECT_EQ(task.resume(), nullptr);
  EXPECT_EQ(log,
            (Log{"first", "first went on with 1", "end of first", "second", "second went on with 2",
                 "end of second", "end of inner", "outer went on", "end of outer"}));
}

TEST(Task, ThrowsOutOfNestedParts) {
  Log log;
  Task task = outer(log, true);
  for (int i = 0; i < 3; ++i) ASSERT_NE(task.resume(), nullptr);
  try {
    task.resume();
    FAIL() << "does not throw";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "second");
  }
  const Log unwound(log.end() - 3, log.end());
  EXPECT_EQ(unwound, (Log{"end of second", "end of inner", "end of outer"}));
}

TEST(Task, EndsWhereItWaitsWhenItIsDestroyed) {
  Log log;
  {
    Task task = outer(log, false);
    for (int i = 0; i < 3; ++i) ASSERT_NE(task.resume(), nullptr);
    log.clear();
  }
  EXPECT_EQ(log, (Log{"end of second", "end of inner", "end of outer"}));
}

TEST(Task, MovesWhileItWaits) {
  Log log;
  Task task = outer(log, false);
  ASSERT_NE(task.resume(), nullptr);
  Task moved = std::move(task);
  std::vector<Task> kept;
  kept.push_back(std::move(moved));
  for (int i = 0; i < 2; ++i) ASSERT_NE(kept.front().resume(), nullptr);
  EXPECT_EQ(kept.front().resume(), nullptr);
  EXPECT_EQ(log.back(), "end of outer");
}

TEST(Task, StartsWhatItWaitsFor) {
  int started = 0;
  const auto call = [](int& count) -> Task {
    Exchange counted{ExchangeKind::kShift, ExchangeAxis::kRing, [&](comm::Communicator&) {
                       ++count;
                       return nullptr;
                     }};
    co_await exchange(std::move(counted));
  };
  Task task = call(started);
  const Exchange* pending = task.resume();
  ASSERT_NE(pending, nullptr);
  const auto world = comm::make_single();
  EXPECT_EQ(pending->start(*world), nullptr);
  EXPECT_EQ(started, 1);
  EXPECT_EQ(task.resume(), nullptr);
  world->close();
}

TEST(Task, RunsAloneOnlyWithoutExchanges) {
  Log log;
  const auto quiet = [](Log& lines) -> Task {
    lines.push_back("ran");
    co_return;
  };
  run_alone(quiet(log));
  EXPECT_EQ(log, (Log{"ran"}));
  try {
    run_alone(outer(log, false));
    FAIL() << "does not throw";
  } catch (const EngineError& error) {
    EXPECT_NE(std::string(error.what()).find("reduce_scatter over tp"), std::string::npos);
  }
}

}  // namespace
}  // namespace ptrain::layers
