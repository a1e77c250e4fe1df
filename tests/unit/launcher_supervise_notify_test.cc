#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "launcher/supervise/notify.h"

namespace ptrain::supervise {
namespace {

run::Verdict verdict() {
  run::Verdict verdict;
  verdict.code = ExitCode::kHang;
  verdict.reason = "rank 1: $(touch /tmp/no) `no`";
  return verdict;
}

TEST(Notify, TheCommandFindsTheVerdictAndNoShellReadsIt) {
  const std::string path = testing::TempDir() + "/notified";
  ASSERT_TRUE(notify(
      {"sh", "-c", "echo \"$PTRAIN_CODE $PTRAIN_RUN $PTRAIN_VERDICT $1\" > \"$0\"", path, "a b;c"},
      {"/run dir"}, verdict()));
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(),
            "13 /run dir ptrain: FAILED (13) rank 1: $(touch /tmp/no) `no`; step 0 a b;c\n");
}

TEST(Notify, ACommandThatFailsIsNamed) {
  EXPECT_TRUE(notify({}, {"/r"}, verdict()));
  const auto missing = notify({"no-such-program-here"}, {"/r"}, verdict());
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "failure.notify: no-such-program-here is not in PATH");
  const auto failed = notify({"sh", "-c", "echo why; exit 3"}, {"/r"}, verdict());
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "failure.notify: sh ended with 3: why\n");
}

}  // namespace
}  // namespace ptrain::supervise
