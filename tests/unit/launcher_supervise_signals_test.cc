#include <gtest/gtest.h>
#include <signal.h>

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
  EXPECT_EQ(signals.next(), SIGUSR2);
  ::raise(SIGTERM);
  EXPECT_EQ(signals.next(), SIGTERM);
  EXPECT_FALSE(signals.next());
}

}  // namespace
}  // namespace ptrain::supervise
