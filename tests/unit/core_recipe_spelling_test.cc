#include <gtest/gtest.h>

#include "core/recipe/spelling.h"

namespace ptrain::recipe {
namespace {

TEST(Spelling, CountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("ab", "ba"), 1);  // a swap of neighbours
  EXPECT_EQ(edit_distance("saturday", "sunday"), 3);
}

TEST(Spelling, FindsTheNearest) {
  const std::vector<std::string> words = {"sequence", "steps", "seed"};
  EXPECT_EQ(nearest("sequense", words), "sequence");
  EXPECT_EQ(nearest("STEPS", words), "steps");
  EXPECT_EQ(nearest("sede", words), "seed");
  EXPECT_EQ(nearest("learning", words), "");
  EXPECT_EQ(nearest("", words), "");
  EXPECT_EQ(nearest(std::string(100000, 's'), words), "");
}

}  // namespace
}  // namespace ptrain::recipe
