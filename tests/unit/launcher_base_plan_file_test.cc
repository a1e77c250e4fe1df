#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "core/run/directory.h"
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
  EXPECT_EQ(damaged.error().hint, "give the plan.json of a run of this build");
}

// What can be done is named only where it can.
TEST_F(PlanFile, ADamagedOneOfARunHasACopy) {
  const run::Directory run{folder_};
  ASSERT_TRUE(publish_file(run.plan(), "{"));
  for (int attempt = 1; attempt <= 3; ++attempt) {
    fs::create_directories(run.attempt_folder(attempt));
    ASSERT_TRUE(write_plan(run.attempt_plan(attempt), support::example_plan()));
  }
  ASSERT_TRUE(publish_file(run.attempt_plan(3), "{"));
  EXPECT_EQ(read_plan(run.plan()).error().hint,
            "copy " + run.attempt_plan(2) + " over it: an attempt of this run ran on that");
}

}  // namespace
}  // namespace ptrain
