#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

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

// In a session of its own, as a child of the first process.
TEST(Processes, WhatRanksLeftBehindIsKilledByItsMark) {
  const auto start = [](const char* mark) {
    const int pid = ::fork();
    if (pid == 0) {
      ::setsid();
      char* const words[] = {const_cast<char*>("sleep"), const_cast<char*>("600"), nullptr};
      char* const variables[] = {const_cast<char*>(mark), nullptr};
      ::execve("/bin/sleep", words, variables);
      ::_exit(1);
    }
    return pid;
  };
  const int other = start("PTRAIN_TEST_MARK=one and more"), ours = start("PTRAIN_TEST_MARK=one");
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // until both are sleep
  kill_marked("PTRAIN_TEST_MARK=one");
  int status = 0;
  EXPECT_EQ(::waitpid(ours, &status, 0), ours);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_EQ(::waitpid(other, nullptr, WNOHANG), 0);
  ::kill(other, SIGKILL);
  EXPECT_EQ(::waitpid(other, nullptr, 0), other);
}

}  // namespace
}  // namespace ptrain::supervise
