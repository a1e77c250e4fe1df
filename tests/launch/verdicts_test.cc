// How runs of the shipped engine end: every failure is named within seconds, with the rank, the
// class and the exit code, and no process is left.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "launcher/supervise/run_folder.h"
#include "tests/launch/run_fixture.h"

namespace ptrain {
namespace {

namespace fs = std::filesystem;

class Verdicts : public RunFixture {
 protected:
  Verdicts() : RunFixture(PTRAIN_SHIPPED_BINARY) {}

  // A run that does not end by itself, past its first steps.
  base::Subprocess start_long(std::vector<std::string> more = {}) {
    more.insert(more.end(), {"shapes.0.steps=1000000", "checkpoint.every_steps=0"});
    auto process = start_run("", std::move(more));
    wait_until_ready();
    wait_for_step(20);
    return process;
  }

  void wait_for_collective(std::size_t rank);
  void freeze_where_the_peer_waits(const std::string& communicator);

  void expect_verdict(base::Subprocess process, ExitCode code, int rank, int signal = 0) {
    EXPECT_EQ(end_of(std::move(process)), static_cast<int>(code)) << output_;
    EXPECT_EQ(verdict().code, code);
    EXPECT_EQ(verdict().rank, rank) << output_;
    EXPECT_EQ(verdict().signal, signal) << output_;
    EXPECT_TRUE(said("ptrain: FAILED (" + std::to_string(static_cast<int>(code)) + ") rank"))
        << output_;
  }
};

TEST_F(Verdicts, KilledBySignals) {
  for (const int signal : {SIGKILL, SIGSEGV}) {
    auto process = start_long();
    ::kill(pid_of(1), signal);
    since_ = Clock::now();
    expect_verdict(std::move(process), ExitCode::kRankSignal, 1, signal);
    EXPECT_LT(took_, 5);
    EXPECT_EQ(processes_alive(), 0);
    fs::remove_all(run_.root);
  }
}

// Until the supervisor has heard of a collective of the rank: heartbeats come once a second.
void Verdicts::wait_for_collective(std::size_t rank) {
  const std::string board = run_.rank_board(1);
  for (int tries = 0; tries < 300; ++tries) {
    const auto ranks = nlohmann::json::parse(read(board), nullptr, false);
    if (ranks.is_array() && ranks.size() > rank && ranks[rank].value("collective", "") != "")
      return;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  FAIL() << "no heartbeat of rank " << rank << " names a collective";
}

TEST_F(Verdicts, AFrozenRankIsNamedWithItsCollective) {
  auto process = start_long({"failure.hang_timeout=2"});
  wait_for_collective(1);
  ::kill(pid_of(1), SIGSTOP);
  since_ = Clock::now();
  expect_verdict(std::move(process), ExitCode::kHang, 1);
  EXPECT_TRUE(said("no progress for")) << output_;
  EXPECT_TRUE(said("last collective ") || said(", waits in ")) << output_;
  EXPECT_FALSE(said("last collective none")) << output_;
  EXPECT_LT(took_, 10);
}

// Stops rank 1 at a place where rank 0 comes to wait for it in this communicator.
void Verdicts::freeze_where_the_peer_waits(const std::string& communicator) {
  for (int tries = 0; tries < 20; ++tries) {
    ::kill(pid_of(1), SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(2500));  // two heartbeats of rank 0
    const auto ranks = nlohmann::json::parse(read(run_.rank_board(1)), nullptr, false);
    if (ranks.is_array() && !ranks.empty() && ranks[0].value("waiting", false) &&
        ranks[0].value("collective", "").starts_with(communicator))
      return;
    ::kill(pid_of(1), SIGCONT);
    std::this_thread::sleep_for(std::chrono::milliseconds(10 + tries));
  }
  FAIL() << "rank 0 never waits in " << communicator;
}

struct SharedAxis {
  const char* name;
  std::vector<std::string> overrides;
  const char* communicator;
};

class LostInACollective : public Verdicts, public testing::WithParamInterface<SharedAxis> {};

// The peer stands in the middle of an exchange between two segments of a layer.
TEST_P(LostInACollective, EndsTheRunInSeconds) {
  auto overrides = GetParam().overrides;
  overrides.push_back("failure.hang_timeout=600");
  auto process = start_long(overrides);
  freeze_where_the_peer_waits(GetParam().communicator);
  ::kill(pid_of(1), SIGKILL);
  since_ = Clock::now();
  expect_verdict(std::move(process), ExitCode::kRankSignal, 1, SIGKILL);
  EXPECT_LT(took_, 10);
  EXPECT_EQ(processes_alive(), 0);
}

INSTANTIATE_TEST_SUITE_P(
    All, LostInACollective,
    testing::Values(SharedAxis{"tp", {"parallel.dp=1", "parallel.tp=2"}, "tp/exchange"},
                    SharedAxis{"ulysses", {"parallel.dp=1", "parallel.cp.ulysses=2"}, "cp/ulysses"},
                    SharedAxis{"ep", {"model.family=mixtral", "parallel.ep=2"}, "ep/exchange"}),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST_F(Verdicts, StopsOnRequestWithACheckpoint) {
  auto process = start_long();
  ::kill(process.pid(), SIGINT);
  EXPECT_EQ(end_of(std::move(process)), 20) << output_;
  const auto steps = supervise::checkpoint_steps(run_);
  ASSERT_FALSE(steps.empty());
  EXPECT_EQ(steps.back(), verdict().step);
}

// Addresses run out before pages do: an allocation fails, and the rank says so itself.
TEST_F(Verdicts, AnAllocationThatFails) {
  write("cluster.yaml", "name: test\nnodes: [{name: here, cores: 2, memory_gib: 64}]\n");
  const std::string command =
      "ulimit -v 6000000; exec " + binary_ + " run " + folder_ + "/recipe.yaml --directory " +
      run_.root + " model.hidden_size=2048 model.intermediate_size=8192 model.num_hidden_layers=8";
  since_ = Clock::now();
  auto process = base::Subprocess::start({{"/bin/sh", "-c", command}, environment_});
  ASSERT_TRUE(process);
  EXPECT_EQ(end_of(std::move(*process)), 12) << output_;
  EXPECT_TRUE(said("is out of memory") && said("use smaller micro-batches")) << output_;
}

// A memory control group of version 1 or 2 for one test.
class Group {
 public:
  explicit Group(std::int64_t limit_bytes) {
    const std::string name = "/ptrain-test-" + std::to_string(::getpid());
    for (const auto& [root, file] : {std::pair{"/sys/fs/cgroup/memory", "/memory.limit_in_bytes"},
                                     std::pair{"/sys/fs/cgroup", "/memory.max"}}) {
      std::error_code error;
      if (!fs::exists(std::string(root) + "/cgroup.procs") ||
          !fs::create_directory(root + name, error))
        continue;
      std::ofstream limit(root + name + file);
      limit << limit_bytes << std::flush;
      path_ = root + name;
      if (limit) return;
      leave();
    }
  }
  ~Group() { leave(); }
  const std::string& path() const { return path_; }

 private:
  void leave() {
    if (!path_.empty()) ::rmdir(path_.c_str());
    path_.clear();
  }
  std::string path_;
};

// The kernel kills a rank: its own count of such kills is the evidence that it was for memory.
TEST_F(Verdicts, KilledForWantOfMemory) {
  const Group group(std::int64_t{300} << 20);
  if (group.path().empty()) GTEST_SKIP() << "no memory control group can be made here";
  const std::string command =
      "echo $$ > " + group.path() + "/cgroup.procs && exec " + binary_ + " run " + folder_ +
      "/recipe.yaml --directory " + run_.root +
      " model.hidden_size=1024 model.intermediate_size=4096 model.num_hidden_layers=4";
  since_ = Clock::now();
  auto process = base::Subprocess::start({{"/bin/sh", "-c", command}, environment_});
  ASSERT_TRUE(process);
  EXPECT_EQ(end_of(std::move(*process)), 12) << output_;
  EXPECT_TRUE(said("killed by signal 9") && said("in this job's control group")) << output_;
  while (processes_alive() > 0) ::usleep(20000);
}

// A rate at which weights overflow at once.
TEST_F(Verdicts, ALossThatIsNotANumber) {
  const std::vector<std::string> overflow{"learning_rate.peak=100", "optimizer.eps=1e-30",
                                          "shapes.0.steps=400"};
  EXPECT_EQ(run_recipe(overflow), 16) << output_;
  EXPECT_TRUE(said("are not both finite") && said("learning_rate.peak")) << output_;
  fs::remove_all(run_.root);
  auto skipping = overflow;
  skipping.push_back("failure.nonfinite=skip");
  since_ = Clock::now();
  EXPECT_EQ(run_recipe(skipping), 0) << output_;
  EXPECT_TRUE(said("the step is skipped")) << output_;
}

}  // namespace
}  // namespace ptrain
