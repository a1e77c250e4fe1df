#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "launcher/supervise/signals.h"

namespace ptrain::supervise {
namespace {

TEST(StopSignals, ArriveAsNumbersAndUsr1DoesNothing) {
  StopSignals signals;
  EXPECT_FALSE(signals.next());
  ::raise(SIGUSR1);
  EXPECT_FALSE(signals.next());
  ::raise(SIGUSR1);
  ::raise(SIGUSR2);
  EXPECT_EQ(signals.next(), StopSignal{SIGUSR2});
  ::raise(SIGTERM);
  EXPECT_EQ(signals.next(), StopSignal{SIGTERM});
  EXPECT_FALSE(signals.next());
}

TEST(StopSignals, OneSaysThatNothingIsToBeSaved) {
  StopSignals signals;
  ASSERT_TRUE(stop_at_once(::getpid()));
  EXPECT_EQ(signals.next(), (StopSignal{SIGTERM, true}));
  EXPECT_FALSE(signals.next());
}

TEST(StopSignals, AlarmsAndFilesThatGrewTooLargeDoNotEndUs) {
  StopSignals signals;
  for (const int signal : {SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGXFSZ}) ::raise(signal);
  EXPECT_FALSE(signals.next());
  for (const int signal : {SIGHUP, SIGQUIT, SIGXCPU}) {
    ::raise(signal);
    EXPECT_EQ(signals.next(), StopSignal{signal});
  }
}

}  // namespace
}  // namespace ptrain::supervise
