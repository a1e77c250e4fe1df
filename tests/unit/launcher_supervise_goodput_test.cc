#include <gtest/gtest.h>

#include "launcher/supervise/goodput.h"

namespace ptrain::supervise {
namespace {

TEST(Goodput, StepsMadeAgainCountOnce) {
  Goodput goodput;
  EXPECT_EQ(goodput.trained_s(9), 0);
  for (int step = 11; step <= 15; ++step) goodput.step(step, 1);
  EXPECT_EQ(goodput.trained_s(13), 3);
  EXPECT_EQ(goodput.trained_s(10), 0);
  goodput.step(14, 2);  // after a restart from step 13
  EXPECT_EQ(goodput.trained_s(20), 5);
}

run::Event event(const char* time, double mono_s, int attempt) {
  return {run::EventKind::kWarning, time, mono_s, attempt, -1, {}};
}

TEST(WholeRun, HoldsWhatAllItsSupervisorsHeld) {
  EXPECT_EQ(held_s({}), 0);
  const std::vector<run::Event> events{
      event("2026-11-30T06:00:00.000Z", 0, 0),  // `ptrain run`, which submits and ends
      event("2026-11-30T06:10:02.000Z", 2, 1),  // a supervisor that is killed after 30 s
      event("2026-11-30T06:10:30.250Z", 30.25, 1),
      event("2026-11-30T06:20:35.000Z", 35, 2),  // another, for 70 s, with two attempts
      event("2026-11-30T06:21:00.000Z", 60, 3),
      event("2026-11-30T06:21:10.000Z", 70, 3),
      event("no time", 900, 3),
  };
  EXPECT_DOUBLE_EQ(held_s(events), 30.25 + 70);
}

TEST(WholeRun, TrainedWhatItsMetricsTellUpToAStep) {
  const char* metrics =
      "{\"step\":1,\"step_s\":0.5}\n{\"step\":2,\"step_s\":1.5}\nnothing\n{\"step\":3,\"step_s\":4}"
      "\n";
  EXPECT_EQ(trained_s(metrics, 2), 2);
  EXPECT_EQ(trained_s(metrics, 100), 6);
  EXPECT_EQ(trained_s("", 100), 0);
}

}  // namespace
}  // namespace ptrain::supervise
