#include <gtest/gtest.h>
#include <stdlib.h>
#include <time.h>

#include "launcher/supervise/time_limit.h"

namespace ptrain::supervise {
namespace {

// As Slurm 22.05 writes it.
constexpr const char* kShown =
    "JobId=7 JobName=wrap UserId=root(0) StartTime=2026-11-30T06:00:00 EndTime=2026-11-30T06:05:04 "
    "Deadline=N/A SuspendTime=None";

TEST(JobEnd, IsReadInTheZoneOfThisMachine) {
  for (const auto& [zone, offset] : {std::pair("UTC0", 0), std::pair("EST5", 5 * 3600)}) {
    ::setenv("TZ", zone, 1);
    ::tzset();
    const auto end = job_end(kShown);
    ASSERT_TRUE(end);
    // date -u -d '2026-11-30 06:05:04' +%s
    EXPECT_EQ(std::chrono::system_clock::to_time_t(*end), 1796018704 + offset);
  }
  ::unsetenv("TZ");
  ::tzset();
}

TEST(JobEnd, MayBeUnknown) {
  for (const char* text :
       {"", "JobId=7 EndTime=Unknown Deadline=N/A", "EndTime=", "a EndTime=2026"})
    EXPECT_FALSE(job_end(text)) << text;
}

TEST(SaveTimes, TheReserveFollowsWhatSavesAndStepsTake) {
  SaveTimes times(30);
  EXPECT_EQ(times.reserve_s(), 55);  // none was seen yet
  times.step(2);
  times.save_started(100);
  times.save_ended(120);
  times.save_started(200);
  times.save_ended(201);
  EXPECT_EQ(times.reserve_s(), 2 * 2 + 1.5 * 20 + 10);
  for (int i = 0; i < 100; ++i) times.step(0.5);
  EXPECT_NEAR(times.reserve_s(), 2 * 0.5 + 1.5 * 20 + 10, 1e-9);
  times.save_ended(900);  // of no save that began
  EXPECT_NEAR(times.reserve_s(), 41, 1e-9);
}

TEST(JobClock, WithoutAJobThereIsNoLimit) {
  JobClock clock("", std::nullopt);
  EXPECT_FALSE(clock.left_s());
}

}  // namespace
}  // namespace ptrain::supervise
