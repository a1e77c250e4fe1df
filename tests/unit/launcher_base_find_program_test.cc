#include <gtest/gtest.h>

#include "launcher/base/find_program.h"

namespace ptrain::base {
namespace {

TEST(FindProgram, LooksThroughTheFoldersInTheirOrder) {
  EXPECT_EQ(find_in_path("/nowhere:/bin:/usr/bin", "sh"), "/bin/sh");
  EXPECT_EQ(find_in_path("/nowhere:", "sh"), "");
  EXPECT_EQ(find_in_path("", "sh"), "");
  EXPECT_EQ(find_in_path("relative", "sh"), "");
}

}  // namespace
}  // namespace ptrain::base
