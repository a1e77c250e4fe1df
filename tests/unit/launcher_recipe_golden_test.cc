// Recipes that are refused, each with the exact report: tests/golden/recipe/NAME/recipe.yaml and
// expected.txt, with the overrides, one a line, in overrides.txt. PTRAIN_BLESS=1 rewrites the
// expected texts; read the difference before it is committed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "launcher/recipe/reader.h"

namespace ptrain::recipe {
namespace {

namespace fs = std::filesystem;

fs::path golden_folder() {
  const char* source = std::getenv("PTRAIN_SOURCE_DIR");
  return fs::path(source == nullptr ? "." : source) / "tests/golden/recipe";
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> lines_of(const fs::path& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(golden_folder())) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class RefusedRecipe : public testing::TestWithParam<std::string> {};

TEST_P(RefusedRecipe, IsReportedAsExpected) {
  const fs::path folder = golden_folder() / GetParam();
  const FindModel find_model = [&](const std::string& file) -> Result<NamedText> {
    if (!fs::exists(folder / file))
      return fail(ExitCode::kUsage, "there is no such file as " + file);
    return NamedText{file, text_of(folder / file)};
  };
  const auto result = read_recipe_text({"recipe.yaml", text_of(folder / "recipe.yaml")},
                                       lines_of(folder / "overrides.txt"), find_model);
  ASSERT_FALSE(result.has_value()) << "accepted";
  EXPECT_EQ(result.error().code, ExitCode::kUsage);
  const std::string report = result.error().message + "\n";
  if (std::getenv("PTRAIN_BLESS") != nullptr) std::ofstream(folder / "expected.txt") << report;
  EXPECT_EQ(report, text_of(folder / "expected.txt"));
}

INSTANTIATE_TEST_SUITE_P(Golden, RefusedRecipe, testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace ptrain::recipe
