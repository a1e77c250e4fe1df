#include <gtest/gtest.h>

#include "core/recipe/slurm.h"

namespace ptrain::recipe {
namespace {

TEST(SlurmArray, IsANumberOfTasksThatFollowEachOther) {
  EXPECT_EQ(num_tasks(""), 0);
  EXPECT_EQ(num_tasks("1"), 1);
  EXPECT_EQ(num_tasks("12"), 12);
  EXPECT_EQ(num_tasks("1-12%1"), 12);
}

// Tasks that run at once, others than 1, 2, 3, ..., and what is no number.
TEST(SlurmArray, AnyOtherIsRefused) {
  for (const char* array :
       {"1-12", "1-12%2", "0-11%1", "2-3%1", "1,2,3", "1-9:2%1", "3%1", "0", "-1", "1-0%1", "1-%1",
        "%1", "1-%", " 3", "3 ", "3x", "99999999999", "1-9%1%1"})
    EXPECT_EQ(num_tasks(array), std::nullopt) << array;
}

}  // namespace
}  // namespace ptrain::recipe
