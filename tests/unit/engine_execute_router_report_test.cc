#include <gtest/gtest.h>

#include "engine/execute/router_report.h"

namespace ptrain::execute {
namespace {

// Two layers of four experts; 10 targets, 8 tokens a layer, 2 choices a token. By hand.
TEST(RouterReport, IsTheMeanOverTargetsTokensAndLayers) {
  layers::RouterSums sums;
  sums.begin(2, 4);
  sums.balance_loss = 24;
  sums.z_loss = 50;
  sums.entropy = 8;
  sums.num_tokens = 16;
  sums.num_dropped = 4;
  sums.loads = {4, 4, 4, 4, 0, 10, 6, 0};
  const auto report = report_of(to_numbers(sums), sums.num_experts, 10);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->balance_loss, 1.2);
  EXPECT_EQ(report->z_loss, 2.5);
  EXPECT_EQ(report->entropy, 0.5);
  EXPECT_EQ(report->dropped, 4.0 / 32);
  EXPECT_EQ(report->largest_load, 2.5);
  EXPECT_EQ(report->idle, 2);
  EXPECT_EQ(report->num_experts, 8);
}

TEST(RouterReport, IsNoneWithoutExperts) {
  EXPECT_TRUE(to_numbers({}).empty());
  EXPECT_FALSE(report_of({}, 0, 10));
}

// A step without a token, and ranks that hold no layer with experts.
TEST(RouterReport, NothingIsDividedByNothing) {
  layers::RouterSums sums;
  sums.begin(1, 2);
  const auto report = report_of(to_numbers(sums), 2, 0);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->balance_loss, 0);
  EXPECT_EQ(report->largest_load, 0);
}

}  // namespace
}  // namespace ptrain::execute
