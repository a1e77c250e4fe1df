#include <gtest/gtest.h>

#include "engine/train/router_watch.h"

namespace ptrain::train {
namespace {

execute::RouterReport report(std::int64_t idle, double dropped) {
  execute::RouterReport report;
  report.idle = idle;
  report.dropped = dropped;
  report.largest_load = 3.25;
  report.num_experts = 16;
  return report;
}

TEST(RouterWatch, WarnsOnceOfExpertsThatStayIdle) {
  RouterWatch watch;
  for (int step = 1; step < 20; ++step) EXPECT_FALSE(watch.step(report(2, 0)));
  const auto message = watch.step(report(2, 0));
  ASSERT_TRUE(message);
  EXPECT_EQ(*message,
            "in each of the last 20 steps some experts had no token, 2 of 16 in this one, and the "
            "largest load was 3.2 times the mean; raise model.router_aux_loss_coef or "
            "model.router_bias_update_rate");
  for (int step = 0; step < 100; ++step) EXPECT_FALSE(watch.step(report(2, 0)));
}

TEST(RouterWatch, AStepWithoutIdleExpertsStartsTheCountAgain) {
  RouterWatch watch;
  for (int step = 1; step < 20; ++step) EXPECT_FALSE(watch.step(report(1, 0)));
  EXPECT_FALSE(watch.step(report(0, 0)));
  for (int step = 1; step < 20; ++step) EXPECT_FALSE(watch.step(report(1, 0)));
  EXPECT_TRUE(watch.step(report(1, 0)));
}

TEST(RouterWatch, WarnsOfManyDroppedChoices) {
  RouterWatch watch;
  for (int step = 1; step < 20; ++step) EXPECT_FALSE(watch.step(report(0, 0.25)));
  const auto message = watch.step(report(0, 0.25));
  ASSERT_TRUE(message);
  EXPECT_NE(message->find("25 % of all choices of experts were dropped"), std::string::npos);
}

}  // namespace
}  // namespace ptrain::train
