// ptrain run, resume, stop, status, logs and list under the real mpirun, with the fake engine.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/run/directory.h"
#include "launcher/base/subprocess.h"
#include "launcher/supervise/event_log.h"
#include "launcher/supervise/run_folder.h"

namespace ptrain {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr const char* kRecipe = R"(version: 1
name: launched
seed: 1
model: {hidden_size: 64, intermediate_size: 128, num_hidden_layers: 2, num_attention_heads: 4}
data: {tokenizer: byte, train: [{path: text.txt}]}
shapes:
  - {name: short, sequence: 32, global_batch_tokens: 128, steps: 30}
  - {name: long, sequence: 64, global_batch_tokens: 128, steps: 10}
learning_rate: {peak: 1e-3}
parallel: {dp: 2, shard: 1}
cluster: {file: cluster.yaml, ranks_per_node: 2}
checkpoint: {every_steps: 10}
)";

constexpr const char* kCluster = R"(name: test
nodes: [{name: here, cores: 2, memory_gib: 8}]
)";

class Launch : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/ptrain-launch-XXXXXX";
    folder_ = ::mkdtemp(name);
    std::ofstream(folder_ + "/recipe.yaml") << kRecipe;
    std::ofstream(folder_ + "/cluster.yaml") << kCluster;
    std::ofstream(folder_ + "/text.txt") << "some text";
    run_.root = folder_ + "/run";
  }

  void TearDown() override {
    EXPECT_EQ(ranks_alive(), 0) << "processes are left behind";
    fs::remove_all(folder_);
  }

  base::Subprocess start(std::vector<std::string> arguments, const std::string& fake = "") {
    arguments.insert(arguments.begin(), PTRAIN_TEST_BINARY);
    auto process = base::Subprocess::start(
        {arguments, {{"PTRAIN_FAKE", fake}, {"PTRAIN_FAKE_ONCE", once_}}});
    EXPECT_TRUE(process);
    return std::move(*process);
  }

  base::Subprocess start_run(const std::string& fake, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{"run", folder_ + "/recipe.yaml", "--directory", run_.root};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return start(arguments, fake);
  }

  // Waits for the end; what it wrote is in output_, the seconds since `since_` in took_.
  int end_of(base::Subprocess process) {
    output_.clear();
    for (;;) {
      const auto status = process.poll();
      output_ += process.read_output();
      took_ = std::chrono::duration<double>(Clock::now() - since_).count();
      if (status) return status->signal != 0 ? -status->signal : status->code;
      if (took_ > 60) return -1000;
      std::this_thread::sleep_for(milliseconds(10));
    }
  }

  int run_command(std::vector<std::string> arguments, const std::string& fake = "") {
    since_ = Clock::now();
    return end_of(start(std::move(arguments), fake));
  }

  // Until both ranks are ready, at most 20 s.
  void wait_until_ready() {
    for (int i = 0; i < 1000 && count(run::EventKind::kRankReady) < 2; ++i)
      std::this_thread::sleep_for(milliseconds(20));
    ASSERT_GE(count(run::EventKind::kRankReady), 2);
    std::this_thread::sleep_for(milliseconds(100));
    since_ = Clock::now();
  }

  int count(run::EventKind kind) const {
    const auto events = supervise::read_events(run_.events());
    if (!events) return 0;
    return static_cast<int>(std::ranges::count(*events, kind, &run::Event::kind));
  }

  // Processes whose command line names our folder.
  int ranks_alive() const {
    int alive = 0;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      std::ifstream file(entry.path() / "cmdline", std::ios::binary);
      const std::string line((std::istreambuf_iterator<char>(file)), {});
      if (line.find(folder_) != std::string::npos) ++alive;
    }
    return alive;
  }

  run::Verdict verdict() const {
    const auto read = supervise::read_verdict(run_.verdict());
    EXPECT_TRUE(read);
    return read.value_or(run::Verdict{});
  }

  std::string folder_, output_, once_;
  run::Directory run_;
  Clock::time_point since_ = Clock::now();
  double took_ = 0;
};

TEST_F(Launch, RunsBothShapesToTheEnd) {
  EXPECT_EQ(end_of(start_run("")), 0) << output_;
  EXPECT_EQ(verdict().code, ExitCode::kDone);
  EXPECT_EQ(verdict().step, 40);
  EXPECT_EQ(count(run::EventKind::kAttemptStarted), 2);  // one a shape
  EXPECT_EQ(fs::status(run_.root).permissions(), fs::perms::owner_all);
  EXPECT_TRUE(fs::exists(run_.rank_log(2, 1)));
  EXPECT_NE(output_.find("step 40/40"), std::string::npos) << output_;
  EXPECT_EQ(run_command({"status", run_.root}), 0);
  EXPECT_NE(output_.find("state: finished"), std::string::npos) << output_;
  EXPECT_EQ(run_command({"list", folder_}), 0);
  EXPECT_NE(output_.find(run_.root + "  finished  step 40/40"), std::string::npos) << output_;
  EXPECT_EQ(run_command({"resume", run_.root}), 0);
  EXPECT_NE(output_.find("is finished"), std::string::npos) << output_;
}

struct Death {
  const char* fake;
  ExitCode code;
  int rank;
  int signal;
};

class Deaths : public Launch, public testing::WithParamInterface<Death> {};

TEST_P(Deaths, AreNamedWithinFiveSeconds) {
  const Death& death = GetParam();
  auto process = start_run(death.fake);
  wait_until_ready();  // the death comes about half a second later
  EXPECT_EQ(end_of(std::move(process)), static_cast<int>(death.code)) << output_;
  EXPECT_LT(took_, 5 + 0.5);
  EXPECT_EQ(verdict().rank, death.rank) << output_;
  EXPECT_EQ(verdict().signal, death.signal);
  EXPECT_NE(output_.find("FAILED"), std::string::npos) << output_;
}

INSTANTIATE_TEST_SUITE_P(
    All, Deaths,
    testing::Values(Death{"1:kill@25", ExitCode::kRankSignal, 1, SIGKILL},
                    Death{"0:segv@25", ExitCode::kRankSignal, 0, SIGSEGV},
                    Death{"1:exit3@25", ExitCode::kEnvironment, 1, 0},
                    Death{"1:exit0@25", ExitCode::kRankError, 1, 0},
                    Death{"0:error@25", ExitCode::kNonFinite, 0, 0}));

TEST_F(Launch, NamesTheRankThatHangs) {
  EXPECT_EQ(end_of(start_run("1:stall@5", {"failure.hang_timeout=1"})), 13) << output_;
  EXPECT_EQ(verdict().rank, 1) << output_;
  EXPECT_LT(took_, 15);
}

TEST_F(Launch, FirstInterruptSavesAndStops) {
  auto process = start_run("", {"shapes.0.steps=200"});
  wait_until_ready();
  ::kill(process.pid(), SIGINT);
  EXPECT_EQ(end_of(std::move(process)), 20) << output_;
  const auto steps = supervise::checkpoint_steps(run_);
  ASSERT_FALSE(steps.empty());
  EXPECT_EQ(steps.back(), verdict().step);
  EXPECT_EQ(end_of(start({"resume", run_.root})), 0) << output_;
  EXPECT_EQ(verdict().step, 210);
}

TEST_F(Launch, SecondInterruptStopsAtOnce) {
  auto process = start_run("0:stall@10,1:stall@10");
  wait_until_ready();
  std::this_thread::sleep_for(milliseconds(500));
  ::kill(process.pid(), SIGINT);
  std::this_thread::sleep_for(milliseconds(300));
  ::kill(process.pid(), SIGINT);
  EXPECT_EQ(end_of(std::move(process)), 128 + SIGINT) << output_;
  EXPECT_LT(took_, 5);
}

TEST_F(Launch, StopCommandAndInUse) {
  auto process = start_run("", {"shapes.0.steps=400"});
  wait_until_ready();
  EXPECT_EQ(run_command({"status", run_.root}), 0);
  EXPECT_NE(output_.find("state: running"), std::string::npos) << output_;
  EXPECT_EQ(run_command({"resume", run_.root}), 2);
  EXPECT_NE(output_.find("in use"), std::string::npos) << output_;
  EXPECT_EQ(run_command({"stop", run_.root}), 0) << output_;
  EXPECT_EQ(end_of(std::move(process)), 20) << output_;
  EXPECT_EQ(run_command({"stop", run_.root}), 2);
}

TEST_F(Launch, RestartsFromTheNewestCheckpoint) {
  once_ = folder_ + "/happened";
  EXPECT_EQ(end_of(start_run("1:kill@25", {"failure.max_restarts=2"})), 0) << output_;
  EXPECT_EQ(count(run::EventKind::kAttemptStarted), 3);
  EXPECT_EQ(verdict().step, 40);
}

TEST_F(Launch, GivesUpWithoutProgress) {
  EXPECT_EQ(end_of(start_run("1:kill@25", {"failure.max_restarts=5"})), 22) << output_;
  EXPECT_EQ(count(run::EventKind::kAttemptStarted), 2);
}

TEST_F(Launch, KillingTheSupervisorLeavesNoRanks) {
  auto process = start_run("", {"shapes.0.steps=4000"});
  wait_until_ready();
  ::kill(process.pid(), SIGKILL);
  EXPECT_EQ(end_of(std::move(process)), -SIGKILL);
  for (int i = 0; i < 250 && ranks_alive() > 0; ++i) std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(ranks_alive(), 0);
  EXPECT_EQ(run_command({"status", run_.root}), 0);
  EXPECT_NE(output_.find("state: interrupted"), std::string::npos) << output_;
}

TEST_F(Launch, DryRunStartsNothing) {
  EXPECT_EQ(end_of(start_run("", {"--dry-run"})), 0) << output_;
  EXPECT_NE(output_.find("mpirun -np 2 --oversubscribe"), std::string::npos) << output_;
  EXPECT_FALSE(fs::exists(run_.root));
}

TEST_F(Launch, RefusesADirectoryThatExists) {
  fs::create_directory(run_.root);
  EXPECT_EQ(end_of(start_run("")), 2);
  EXPECT_NE(output_.find("exists already"), std::string::npos) << output_;
}

}  // namespace
}  // namespace ptrain
