#include <gtest/gtest.h>

#include "core/base/cache_folder.h"

namespace ptrain {
namespace {

TEST(CacheFolder, XdgThenHome) {
  EXPECT_EQ(cache_folder("/x", "/h"), "/x/ptrain");
  EXPECT_EQ(cache_folder(nullptr, "/h"), "/h/.cache/ptrain");
  EXPECT_EQ(cache_folder("relative", "/h"), "/h/.cache/ptrain");
  EXPECT_EQ(cache_folder("", "h"), "");
  EXPECT_EQ(cache_folder(nullptr, nullptr), "");
}

}  // namespace
}  // namespace ptrain
