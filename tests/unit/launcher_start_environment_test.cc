#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>

#include "launcher/start/environment.h"

namespace ptrain::start {
namespace {

// What is said of a start with this limit at `value`.
std::string said_with_limit(__rlimit_resource what, rlim_t value) {
  rlimit before{};
  ::getrlimit(what, &before);
  const rlimit little{value, before.rlim_max};
  ::setrlimit(what, &little);
  const Status status = check_environment(2, 10);
  ::setrlimit(what, &before);
  return status ? "fine" : status.error().message + "; " + status.error().hint;
}

TEST(Environment, FilesThatMayNotGrowAreNamedBeforeRanksWaitForThem) {
  EXPECT_EQ(said_with_limit(RLIMIT_FSIZE, 10240),
            "a file may have 10240 bytes here, but starting ranks takes 16777216; raise the limit: "
            "`ulimit -f unlimited`, or ask who runs this machine");
  EXPECT_EQ(said_with_limit(RLIMIT_FSIZE, rlim_t{1} << 30), "fine");
}

TEST(Environment, AFullFolderForTemporaryFilesIsNamed) {
  std::string folder = testing::TempDir() + "ptrain-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  if (::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=64k") != 0) {
    ::rmdir(folder.c_str());
    GTEST_SKIP() << "cannot mount a small file system";
  }
  const char* before = ::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("TMPDIR", folder.c_str(), 1);
  const Status status = check_environment(2, 10);
  before == nullptr ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", kept.c_str(), 1);
  ::umount(folder.c_str());
  ::rmdir(folder.c_str());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, folder +
                                        " has room for 65536 bytes of temporary files, but "
                                        "starting ranks takes 1048576");
}

}  // namespace
}  // namespace ptrain::start
