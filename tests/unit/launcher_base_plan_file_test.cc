#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "launcher/base/file.h"
#include "launcher/base/plan_file.h"
#include "tests/support/example_plan.h"

namespace ptrain {
namespace {

namespace fs = std::filesystem;

class PlanFile : public testing::Test {
 protected:
  PlanFile() {
    std::string pattern = (fs::temp_directory_path() / "ptrain-plan-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~PlanFile() override { fs::remove_all(folder_); }

  std::string folder_;
};

TEST_F(PlanFile, ComesBack) {
  const run::Plan plan = support::example_plan();
  const std::string path = folder_ + "/plan.json";
  ASSERT_TRUE(write_plan(path, plan));
  EXPECT_EQ(read_plan(path), plan);
  EXPECT_FALSE(write_plan(folder_ + "/none/plan.json", plan));
}

TEST_F(PlanFile, DamageNamesTheFile) {
  const std::string path = folder_ + "/plan.json";
  EXPECT_EQ(read_plan(path).error().message, path + ": No such file or directory");
  ASSERT_TRUE(publish_file(path, "{\"version\": 1"));
  const auto damaged = read_plan(path);
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().place.file, path);
  EXPECT_NE(damaged.error().hint, "");
}

}  // namespace
}  // namespace ptrain
