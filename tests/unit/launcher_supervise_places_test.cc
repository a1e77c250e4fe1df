#include <gtest/gtest.h>

#include "launcher/supervise/places.h"

namespace ptrain::supervise {
namespace {

using Nodes = std::vector<std::string>;

// Two ranks on each node.
run::Plan plan_on(const Nodes& nodes) {
  run::Plan plan;
  for (const auto& node : nodes)
    for (int slot = 0; slot < 2; ++slot)
      plan.ranks.push_back({static_cast<int>(plan.ranks.size()), node, slot, -1});
  return plan;
}

Result<run::Plan> never(const run::Plan&, const Nodes&) {
  ADD_FAILURE() << "there was no need to plan again";
  return fail(ExitCode::kBug, "");
}

TEST(Places, APlanStaysWhereItsNodesAre) {
  const auto plan = plan_on({"a", "b"});
  EXPECT_EQ(place(plan, {"a", "b", "c"}, never), plan);
}

TEST(Places, OtherNodesTakeTheRanksInTheOrderOfTheJob) {
  EXPECT_EQ(place(plan_on({"a", "b"}), {"a", "c", "d"}, never), plan_on({"a", "c"}));
  EXPECT_EQ(place(plan_on({"a", "b"}), {"b", "c"}, never), plan_on({"b", "c"}));
}

TEST(Places, TooFewNodesNeedAnotherPlan) {
  const Replan fewer = [](const run::Plan&, const Nodes& nodes) -> Result<run::Plan> {
    EXPECT_EQ(nodes, (Nodes{"a", "c"}));
    return plan_on({"x", "y"});  // a cluster file may have names of its own
  };
  EXPECT_EQ(place(plan_on({"a", "b", "c"}), {"a", "c"}, fewer), plan_on({"a", "c"}));
  const Replan as_before = [](const run::Plan& plan, const Nodes&) -> Result<run::Plan> {
    return plan;
  };
  const auto none = place(plan_on({"a", "b", "c"}), {"a", "c"}, as_before);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "2 nodes are left: the plan needs 3 nodes");
}

TEST(Places, TheMostNodesThatALayoutExistsForAreTaken) {
  const Replan pairs = [](const run::Plan&, const Nodes& nodes) -> Result<run::Plan> {
    if (nodes.size() == 2) return plan_on(nodes);
    return fail(ExitCode::kNothingFits, "no layout can run on 6 ranks\n  and why");
  };
  EXPECT_EQ(place(plan_on({"a", "b", "c", "d"}), {"a", "c", "d"}, pairs), plan_on({"a", "c"}));
  const auto none = place(plan_on({"a", "b", "c", "d", "e"}), {"a"}, pairs);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "1 nodes are left: no layout can run on 6 ranks");
}

}  // namespace
}  // namespace ptrain::supervise
