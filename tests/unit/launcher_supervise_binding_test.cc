#include <gtest/gtest.h>

#include "launcher/supervise/binding.h"

namespace ptrain::supervise {
namespace {

using Cpus = std::set<int>;

TEST(Binding, ReadsTheKernelsLists) {
  EXPECT_EQ(cpus_in("0-3,8"), (Cpus{0, 1, 2, 3, 8}));
  EXPECT_EQ(cpus_in("5"), Cpus{5});
  for (const char* text : {"", "x", "3-1", "-1", "0-999999999"})
    EXPECT_EQ(cpus_in(text), Cpus{}) << text;
}

TEST(Binding, RanksWithCoresOfTheirOwnAreNotSpokenOf) {
  Binding binding({"n1", "n1", "n2"}, 2, true);
  EXPECT_EQ(binding.hear(0, "0-1"), "");
  EXPECT_EQ(binding.hear(1, "2-3"), "");
  EXPECT_EQ(binding.hear(2, "0-1"), "");  // another node's
}

TEST(Binding, OneThatHasAnothersCoreIsNamedOnceForItsNode) {
  Binding binding({"n1", "n1", "n1", "n2", "n2"}, 1, true);
  EXPECT_EQ(binding.hear(1, "0"), "");
  EXPECT_EQ(binding.hear(0, "0"),
            "ranks 0 and 1 on n1 share CPU 0, and the plan gives each its own");
  EXPECT_EQ(binding.hear(2, "0-1"), "");
  EXPECT_EQ(binding.hear(3, "0-3"), "");
  EXPECT_NE(binding.hear(4, "0-3"), "");
}

TEST(Binding, RanksThatAreNotBoundMayShareButNeedAsManyAsThreads) {
  Binding binding({"n1", "n1", "n1"}, 2, false);
  EXPECT_EQ(binding.hear(0, "0-3"), "");
  EXPECT_EQ(binding.hear(1, "0-3"), "");
  EXPECT_EQ(binding.hear(2, "3"), "rank 2 on n1 may run on CPU 3 only, and its plan has 2 threads");
}

TEST(Binding, WhoDoesNotTellIsBelieved) {
  Binding binding({"n1", "n1"}, 1, true);
  EXPECT_EQ(binding.hear(0, "") + binding.hear(1, ""), "");
}

}  // namespace
}  // namespace ptrain::supervise
