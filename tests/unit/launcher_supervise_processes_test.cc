#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "launcher/supervise/processes.h"

namespace ptrain::supervise {
namespace {

// A child that has ended, and that nobody has waited for yet.
int zombie() {
  const int pid = ::fork();
  if (pid == 0) ::_exit(0);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT);
  return pid;
}

bool is_there(int pid) { return ::kill(pid, 0) == 0; }

// Whichever of them ended first.
TEST(Processes, ZombiesOfOthersDoNotHideTheRest) {
  const int apart = zombie(), first = zombie(), owned = zombie(), second = zombie();
  EXPECT_TRUE(kill_descendants(owned, Owned::kSpare, std::chrono::milliseconds(5000), apart));
  EXPECT_FALSE(is_there(first));
  EXPECT_FALSE(is_there(second));
  EXPECT_EQ(::waitpid(owned, nullptr, WNOHANG), owned);  // left to their owners
  EXPECT_EQ(::waitpid(apart, nullptr, WNOHANG), apart);
}

TEST(Processes, AllBelowAreKilledButWhatIsApart) {
  const auto sleeper = [] {
    const int pid = ::fork();
    if (pid == 0) {
      ::signal(SIGTERM, SIG_IGN);
      for (;;) ::pause();
    }
    return pid;
  };
  const int apart = sleeper(), other = sleeper();
  EXPECT_TRUE(kill_descendants(0, Owned::kKill, std::chrono::milliseconds(5000), apart));
  EXPECT_FALSE(is_there(other));
  EXPECT_TRUE(is_there(apart));
  ::kill(apart, SIGKILL);
  EXPECT_EQ(::waitpid(apart, nullptr, 0), apart);
}

}  // namespace
}  // namespace ptrain::supervise
