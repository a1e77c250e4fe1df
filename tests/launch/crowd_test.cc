// The real supervisor with as many ranks as a large cluster has, each a control connection:
// PTRAIN_TEST_CROWD="RANKS SECONDS" asks for others than the few hundred of the ordinary test.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <chrono>
#include <filesystem>
#include <set>
#include <sstream>

#include "launcher/base/plan_file.h"
#include "launcher/start/environment.h"
#include "launcher/supervise/event_log.h"
#include "launcher/supervise/run_folder.h"
#include "launcher/supervise/supervisor.h"
#include "tests/support/example_plan.h"

namespace ptrain {
namespace {

constexpr int kRanksOfNode = 8;

class FakeSrun : public start::Backend {
 public:
  explicit FakeSrun(int seconds) : seconds_(std::to_string(seconds)) {}
  base::Command command(const start::Launch& launch) const override {
    return {{PTRAIN_TEST_CROWD, std::to_string(launch.num_ranks), seconds_, launch.request_file},
            {{"PTRAIN_CONTROL_TOKEN", launch.token}}};
  }
  start::LauncherReport report(std::string_view) const override { return {}; }
  Result<std::string> control_host() const override { return "127.0.0.1"; }
  bool kills_on_term() const override { return true; }
  bool binds(const start::Launch&) const override { return false; }
  int files_of_rank() const override { return 1; }

 private:
  std::string seconds_;
};

run::Plan plan_of(int num_ranks) {
  run::Plan plan = support::example_plan();
  plan.recipe.shapes[0].steps = 1000000;
  plan.recipe.log.every_steps = 1000000;
  plan.shapes[0].layout.dp = num_ranks;
  plan.shapes[0].layout.offload = recipe::Offload::kNone;
  plan.ranks.clear();
  for (int rank = 0; rank < num_ranks; ++rank)
    plan.ranks.push_back(
        {rank, "node" + std::to_string(rank / kRanksOfNode), rank % kRanksOfNode, -1});
  return plan;
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

double peak_mebibytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

TEST(Crowd, CostsTheSupervisorLittleAndLosesNoEvent) {
  int num_ranks = 512, seconds = 4;
  if (const char* asked = std::getenv("PTRAIN_TEST_CROWD"))
    std::istringstream(asked) >> num_ranks >> seconds;
  ASSERT_TRUE(start::check_environment(num_ranks, 1));
  std::string folder = testing::TempDir() + "ptrain-crowd-XXXXXX";
  const std::string root = std::string(::mkdtemp(folder.data())) + "/run";
  const auto directory = supervise::create_run(root);
  ASSERT_TRUE(directory);
  const run::Plan plan = plan_of(num_ranks);
  ASSERT_TRUE(write_plan(directory->plan(), plan));
  const FakeSrun srun(seconds);
  supervise::StopSignals signals;
  const auto begin = std::chrono::steady_clock::now();
  const double before = cpu_seconds();
  const auto verdict = supervise::supervise({*directory, plan, srun, "/ptrain", signals, false});
  const double cpu = cpu_seconds() - before;
  const double wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("%d ranks: %.3f cores over %.1f s, %.0f MiB\n", num_ranks, cpu / wall, wall,
              peak_mebibytes());
  EXPECT_EQ(verdict.code, ExitCode::kDone) << verdict.reason;
  EXPECT_LT(cpu / wall, 0.1);
  EXPECT_LT(peak_mebibytes(), 300);
  const auto events = supervise::read_events(directory->events());
  ASSERT_TRUE(events);
  std::set<int> ready;
  std::set<std::pair<int, int>> told;
  for (const auto& event : *events) {
    if (event.kind == run::EventKind::kRankReady) ready.insert(event.rank);
    if (event.kind == run::EventKind::kValidation)
      told.emplace(event.rank, event.fields.at("second").get<int>());
  }
  EXPECT_EQ(std::ssize(ready), num_ranks);
  EXPECT_EQ(std::ssize(told), num_ranks * seconds);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace ptrain
