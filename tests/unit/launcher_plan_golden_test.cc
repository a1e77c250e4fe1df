// Whole plans as text and JSON: tests/golden/plan/NAME/recipe.yaml and cluster.yaml in,
// expected.txt (with --explain) out, or the error; and expected.json where the folder has one. With
// PTRAIN_BLESS=1 the expected files are rewritten; read the difference before it is committed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "launcher/cluster/file.h"
#include "launcher/plan/report.h"
#include "launcher/recipe/reader.h"

namespace ptrain::plan {
namespace {

namespace fs = std::filesystem;

fs::path golden_folder() {
  const char* source = std::getenv("PTRAIN_SOURCE_DIR");
  return fs::path(source == nullptr ? "." : source) / "tests/golden/plan";
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(golden_folder()))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

Result<Planning> plan_of(const fs::path& folder) {
  const recipe::FindModel no_files = [](const std::string& file) -> Result<recipe::NamedText> {
    return fail(ExitCode::kUsage, "no model file " + file + " in this test");
  };
  PlanInput input;
  PTRAIN_TRY(input.recipe, recipe::read_recipe_text(
                               {"recipe.yaml", text_of(folder / "recipe.yaml")}, {}, no_files));
  PTRAIN_TRY(input.cluster,
             cluster::cluster_from_text(text_of(folder / "cluster.yaml"), "cluster.yaml"));
  input.build = "golden";
  return plan_recipe(input);
}

void compare(const fs::path& path, const std::string& text) {
  if (std::getenv("PTRAIN_BLESS") != nullptr) std::ofstream(path) << text;
  EXPECT_EQ(text, text_of(path));
}

class GoldenPlan : public testing::TestWithParam<std::string> {};

TEST_P(GoldenPlan, IsAsExpected) {
  const fs::path folder = golden_folder() / GetParam();
  const auto planning = plan_of(folder);
  if (!planning) {
    const Error& error = planning.error();
    return compare(folder / "expected.txt", "exit " + std::to_string(static_cast<int>(error.code)) +
                                                "\n" + error.message + "\n" + error.hint + "\n");
  }
  compare(folder / "expected.txt", to_text(*planning, true));
  if (fs::exists(folder / "expected.json"))
    compare(folder / "expected.json", to_json(*planning).dump(1) + "\n");
}

INSTANTIATE_TEST_SUITE_P(Plans, GoldenPlan, testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace ptrain::plan
