#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>

#include "core/recipe/field.h"
#include "core/recipe/reference.h"

namespace ptrain::recipe {
namespace {

TEST(Reference, IsTheDocument) {
  const char* source = std::getenv("PTRAIN_SOURCE_DIR");
  const std::string path = std::string(source == nullptr ? "." : source) + "/docs/recipe.md";
  if (std::getenv("PTRAIN_BLESS") != nullptr) std::ofstream(path) << recipe_reference();
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text, recipe_reference()) << "run unit_core_recipe with PTRAIN_BLESS=1";
}

TEST(Reference, EveryFieldIsExplainedOnce) {
  std::set<std::string> paths;
  for (const Field& field : fields()) {
    EXPECT_TRUE(paths.insert(field.path).second) << field.path;
    EXPECT_TRUE(field.description.ends_with('.')) << field.path;
    EXPECT_NE(recipe_reference().find("| `" + field.path + "` |"), std::string::npos);
    EXPECT_EQ(find_reserved(field.path), nullptr) << field.path;
  }
  for (const Reserved& key : reserved_keys()) {
    EXPECT_TRUE(paths.insert(key.path).second) << key.path;
  }
}

}  // namespace
}  // namespace ptrain::recipe
