#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "engine/data/glob.h"

namespace ptrain::data {
namespace {

namespace fs = std::filesystem;

TEST(MatchesPart, StarsAndMarks) {
  for (const auto& [name, part] : {std::pair{"a.h", "*.h"},
                                   {"a.h", "?.h"},
                                   {"abc", "a*c"},
                                   {"abc", "***"},
                                   {"ac", "a*c"},
                                   {"aXbXc", "a*X*c"},
                                   {".git", ".*"},
                                   {"a[b", "a[b"}})
    EXPECT_TRUE(matches_part(name, part)) << name << " " << part;
  for (const auto& [name, part] : {std::pair{"a.hh", "*.h"},
                                   {"ab.h", "?.h"},
                                   {"abd", "a*c"},
                                   {".git", "*"},
                                   {".a", "?a"},
                                   {"", "?"},
                                   {"a", ""},
                                   {"aXc", "a*X*X*c"}})
    EXPECT_FALSE(matches_part(name, part)) << name << " " << part;
}

// Many stars against a long name must not take exponential time.
TEST(MatchesPart, ManyStarsStayCheap) {
  std::string part;
  for (int i = 0; i < 100; ++i) part += "a*";
  EXPECT_FALSE(matches_part(std::string(5000, 'a') + "c", part + "b"));
}

TEST(ExpandGlob, FoldersAtAnyDepth) {
  std::string name = (fs::temp_directory_path() / "ptrain-glob-XXXXXX").string();
  const fs::path root = ::mkdtemp(name.data());
  for (const char* file : {"b.h", "a.h", "x.c", "s/c.h", "s/t/d.h", "s/.hidden/e.h", ".f.h"}) {
    fs::create_directories((root / file).parent_path());
    std::ofstream(root / file) << "text";
  }
  const auto found = [&](const std::string& pattern) {
    std::string names;
    for (const std::string& file : expand_glob(pattern, root.string()).files)
      names += fs::path(file).lexically_relative(root).string() + " ";
    return names;
  };
  EXPECT_EQ(found("*.h"), "a.h b.h ");
  EXPECT_EQ(found("**/*.h"), "a.h b.h s/c.h s/t/d.h ");
  EXPECT_EQ(found("**"), "a.h b.h s/c.h s/t/d.h x.c ");
  EXPECT_EQ(found("**/**/*.h"), "a.h b.h s/c.h s/t/d.h ");
  EXPECT_EQ(found("s/**/?.h"), "s/c.h s/t/d.h ");
  EXPECT_EQ(found("s/*/*.h"), "s/t/d.h ");
  EXPECT_EQ(found("**/t/*"), "s/t/d.h ");
  EXPECT_EQ(found("s/.h*/*"), "s/.hidden/e.h ");
  EXPECT_EQ(found("none/*"), "");
  EXPECT_EQ(found((root / "*.c").string()), "x.c ");
  fs::remove_all(root);
}

}  // namespace
}  // namespace ptrain::data
