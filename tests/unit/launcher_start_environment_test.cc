#include <gtest/gtest.h>
#include <sys/resource.h>

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

}  // namespace
}  // namespace ptrain::start
