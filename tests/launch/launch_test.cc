// ptrain run, resume, stop, status, logs and list under the real mpirun, with the fake engine.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "launcher/supervise/run_folder.h"
#include "tests/launch/run_fixture.h"

namespace ptrain {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

// Two shapes of 30 and 10 steps.
class Launch : public RunFixture {
 protected:
  Launch() : RunFixture(PTRAIN_TEST_BINARY) {}
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

INSTANTIATE_TEST_SUITE_P(All, Deaths,
                         testing::Values(Death{"1:kill@25", ExitCode::kRankSignal, 1, SIGKILL},
                                         Death{"0:segv@25", ExitCode::kRankSignal, 0, SIGSEGV},
                                         Death{"1:exit3@25", ExitCode::kEnvironment, 1, 0},
                                         Death{"1:exit0@25", ExitCode::kRankError, 1, 0},
                                         Death{"0:error@25", ExitCode::kNonFinite, 0, 0},
                                         Death{"1:oom@25", ExitCode::kOutOfMemory, 1, 0}));

// The frozen one first has a second for a heartbeat. Stalled in its own work, frozen by a signal,
// or waiting for ever inside an older collective.
class Hangs : public Launch, public testing::WithParamInterface<const char*> {};

TEST_P(Hangs, AreNamedWithStepAndCollective) {
  EXPECT_EQ(end_of(start_run(GetParam(), {"failure.hang_timeout=1", "shapes.0.steps=200"})), 13)
      << output_;
  EXPECT_EQ(verdict().rank, 1) << output_;
  EXPECT_TRUE(said("rank 1: no progress for")) << output_;
  EXPECT_TRUE(said("(step ")) << output_;
  EXPECT_TRUE(said("last collective world all_reduce#") || said("waits in world all_reduce#"))
      << output_;
  EXPECT_EQ(count(run::EventKind::kHangSuspected), 1);
  // The peer of a rank that stands still can still say where its threads are.
  const std::string log = read(run_.rank_log(1, 0));
  EXPECT_NE(log.find("-- thread "), std::string::npos) << log;
  EXPECT_NE(log.find("libptrain_engine.so"), std::string::npos) << log;
  EXPECT_LT(took_, 10);
}

INSTANTIATE_TEST_SUITE_P(All, Hangs, testing::Values("1:stall@5", "1:freeze@70", "1:lag@5"));

class Signals : public Launch, public testing::WithParamInterface<int> {};

TEST_P(Signals, SaveAndStop) {
  auto process = start_run("", {"shapes.0.steps=1000"});
  wait_for(run::EventKind::kShapeStarted, 1);
  ::kill(process.pid(), GetParam());
  EXPECT_EQ(end_of(std::move(process)), 20) << output_;
  const auto steps = supervise::checkpoint_steps(run_);
  ASSERT_FALSE(steps.empty());
  EXPECT_EQ(steps.back(), verdict().step);
  environment_.emplace_back("PTRAIN_FAKE_STEP_MS", "1");
  EXPECT_EQ(end_of(start({"resume", run_.root})), 0) << output_;
  EXPECT_EQ(verdict().step, 1010);
}

INSTANTIATE_TEST_SUITE_P(All, Signals, testing::Values(SIGINT, SIGTERM, SIGUSR2));

// From the moment there is a run directory, whatever ends the run leaves a verdict in it.
TEST_F(Launch, AStopBeforeTheRanksAreThereLeavesAVerdict) {
  auto process = start_run("", {"shapes.0.steps=1000"});
  while (!fs::exists(run_.root)) std::this_thread::yield();
  ::kill(process.pid(), SIGTERM);
  EXPECT_EQ(end_of(std::move(process)), 20) << output_;
  EXPECT_EQ(verdict().code, ExitCode::kStopped);
  EXPECT_TRUE(said("while it started: there was nothing new to save")) << output_;
}

TEST_F(Launch, AStopDoesNotWaitForASlowStart) {
  environment_.emplace_back("PTRAIN_FAKE_START", "slow");
  auto process = start_run("");
  wait_until_ready();
  ::kill(process.pid(), SIGTERM);
  EXPECT_EQ(end_of(std::move(process)), 20) << output_;
  EXPECT_TRUE(said("stopping now (signal TERM)")) << output_;
}

TEST_F(Launch, Usr1DoesNothing) {
  auto process = start_run("");
  wait_until_ready();
  ::kill(process.pid(), SIGUSR1);
  EXPECT_EQ(end_of(std::move(process)), 0) << output_;
  EXPECT_EQ(verdict().step, 40);
}

// Removed or moved away: what cannot be saved is not trained on.
class LostFolder : public Launch, public testing::WithParamInterface<bool> {};

TEST_P(LostFolder, EndsTheRunWithAVerdict) {
  auto process = start_run("", {"shapes.0.steps=100000", "checkpoint.every_steps=0"});
  wait_until_ready();
  if (GetParam())
    fs::rename(run_.root, run_.root + "-moved");
  else
    fs::remove_all(run_.root);
  EXPECT_EQ(end_of(std::move(process)), 15) << output_;
  EXPECT_TRUE(said("FAILED (15) the run directory " + run_.root + " was removed or moved"))
      << output_;
  EXPECT_TRUE(said("move it back and continue with `ptrain resume " + run_.root + "`")) << output_;
  EXPECT_FALSE(fs::exists(run_.root));
}

INSTANTIATE_TEST_SUITE_P(All, LostFolder, testing::Bool());

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
  auto process = start_run("", {"shapes.0.steps=100000"});
  wait_until_ready();
  EXPECT_EQ(run_command({"status", run_.root}), 0);
  EXPECT_NE(output_.find("state: running"), std::string::npos) << output_;
  std::this_thread::sleep_for(milliseconds(2500));  // a heartbeat and the writing of ranks.json
  EXPECT_EQ(run_command({"status", run_.root}), 0);
  EXPECT_TRUE(said("rank 1: step ") && said("last collective world all_reduce#")) << output_;
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

// As where a quota of files is used up: what ranks need is there, and only the story has gaps.
TEST_F(Launch, EventsThatCannotBeWrittenDoNotEndTheRun) {
  once_ = folder_ + "/happened";
  auto process = start_run("1:kill@28", {"failure.max_restarts=1"});
  wait_until_ready();
  const std::string aside = folder_ + "/aside";
  fs::create_directory(aside);
  ASSERT_EQ(::renameat2(AT_FDCWD, aside.c_str(), AT_FDCWD, run_.events().c_str(), RENAME_EXCHANGE),
            0);
  EXPECT_EQ(end_of(std::move(process)), 0) << output_;
  EXPECT_TRUE(said("warning: cannot write " + run_.events() + ": Is a directory")) << output_;
  EXPECT_EQ(verdict().step, 40);
  EXPECT_TRUE(fs::exists(run_.attempt_folder(3)));
}

TEST_F(Launch, GivesUpWithoutProgress) {
  EXPECT_EQ(end_of(start_run("1:kill@25", {"failure.max_restarts=5"})), 22) << output_;
  EXPECT_EQ(count(run::EventKind::kAttemptStarted), 2);
}

TEST_F(Launch, KillingTheSupervisorLeavesNoRanks) {
  auto process = start_run("", {"shapes.0.steps=100000"});
  wait_until_ready();
  ::kill(process.pid(), SIGKILL);
  EXPECT_EQ(end_of(std::move(process)), -SIGKILL);
  for (int i = 0; i < 250 && processes_alive() > 0; ++i)
    std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(processes_alive(), 0);
  EXPECT_EQ(run_command({"status", run_.root}), 0);
  EXPECT_NE(output_.find("state: interrupted"), std::string::npos) << output_;
}

TEST_F(Launch, StopNowLeavesNoCheckpoint) {
  auto process = start_run("", {"shapes.0.steps=100000", "checkpoint.every_steps=0"});
  wait_until_ready();
  EXPECT_EQ(run_command({"stop", "--now", run_.root}), 0) << output_;
  EXPECT_EQ(end_of(std::move(process)), 128 + SIGTERM) << output_;
  EXPECT_TRUE(supervise::checkpoint_steps(run_).empty());
  EXPECT_LT(took_, 5);
}

TEST_F(Launch, ShowsARunThatEnded) {
  ASSERT_EQ(end_of(start_run("1:kill@25")), 11) << output_;
  EXPECT_EQ(run_command({"status", run_.root}), 0);
  EXPECT_TRUE(said("state: failed") && said("exit code: 11") && said("checkpoint: 20")) << output_;
  EXPECT_EQ(run_command({"status", "--json", run_.root}), 0);
  const auto status = nlohmann::json::parse(output_);
  EXPECT_EQ(status["code"], 11);
  EXPECT_EQ(status["checkpoint"], 20);
  EXPECT_EQ(run_command({"list", "--json", folder_}), 0);
  EXPECT_EQ(nlohmann::json::parse(output_)["state"], "failed");
  EXPECT_EQ(run_command({"logs", run_.root, "--rank", "1"}), 0);
  EXPECT_EQ(output_, "fake: kill\n");
  EXPECT_EQ(run_command({"logs", run_.root, "--rank", "1", "--attempt", "2"}), 2);
  EXPECT_EQ(run_command({"explain", run_.root}), 0);
  EXPECT_TRUE(said("short: dp2 mb2x1") && said("2 ranks, each a replica")) << output_;
  EXPECT_TRUE(said("predicted") && said("tokens/s")) << output_;
  EXPECT_EQ(run_command({"report", run_.root}), 0);
  EXPECT_TRUE(said(run_.root + "/report.html")) << output_;
  const std::string html = read(run_.root + "/report.html");
  EXPECT_NE(html.find("FAILED (11)"), std::string::npos);
  EXPECT_NE(html.find("rank_lost"), std::string::npos);
  EXPECT_EQ(run_command({"report", run_.root, "--to", folder_ + "/none/report.html"}), 3);
  EXPECT_TRUE(said("there is no folder " + folder_ + "/none")) << output_;
}

TEST_F(Launch, AFinishedRunWhoseLastCheckpointIsDamagedIsNotCalledFinished) {
  ASSERT_EQ(end_of(start_run("")), 0) << output_;
  EXPECT_EQ(run_command({"status", run_.root}), 0);
  EXPECT_FALSE(said("damaged")) << output_;
  const std::string metadata = run_.checkpoint(40) + "/.metadata";
  fs::resize_file(metadata, 3);
  EXPECT_EQ(run_command({"status", run_.root}), 0);
  EXPECT_TRUE(said("the newest checkpoint is damaged: " + metadata)) << output_;
  EXPECT_EQ(run_command({"resume", run_.root}), 0);
  EXPECT_TRUE(said("all 40 steps are done, but the last checkpoint is damaged: " + metadata))
      << output_;
  EXPECT_FALSE(said("is finished")) << output_;
  EXPECT_EQ(count(run::EventKind::kAttemptStarted), 3);
}

TEST_F(Launch, DamagedFilesOfARunAreNamedWithARemedy) {
  ASSERT_EQ(end_of(start_run("1:kill@25")), 11) << output_;
  std::ofstream(run_.verdict()) << "{";
  EXPECT_NE(run_command({"status", run_.root}), 0);
  EXPECT_TRUE(said(run_.verdict()) && said("remove the file")) << output_;
  EXPECT_EQ(output_.find(run_.verdict()), output_.rfind(run_.verdict())) << output_;  // once
  auto plan = nlohmann::json::parse(read(run_.plan()));
  plan["shapes"][0]["threads"] = 0;
  std::ofstream(run_.plan()) << plan;
  EXPECT_EQ(run_command({"resume", run_.root}), 2);
  EXPECT_TRUE(said(run_.plan()) && said("threads of 'short' is 0; allowed: 1 to ")) << output_;
}

TEST_F(Launch, TellsTheStory) {
  ASSERT_EQ(end_of(start_run("")), 0);
  for (const char* part :
       {"run directory: ", "  shape short: 2 ranks, each a replica; ", "Ctrl-C stops",
        "step 1/40 short  loss 1.0000", "step 10/40 short", "step 40/40 long", "predicted",
        "step time", "tokens/s", "memory of a rank", "ptrain: finished; step 40"})
    EXPECT_TRUE(said(part)) << part << " is missing in:\n" << output_;
  EXPECT_FALSE(said("step 11/40")) << "log.every_steps is 10";
  EXPECT_FALSE(said("\x1b")) << "escapes in a pipe";
}

// A reader that goes away must not end a run of days.
TEST_F(Launch, GoesOnWhenItsReaderIsGone) {
  const std::string command =
      binary_ + " run " + folder_ + "/recipe.yaml --directory " + run_.root + " 2>&1 | head -n 1";
  const auto ended = base::run_to_end({{"/bin/sh", "-c", command}, environment_});
  ASSERT_TRUE(ended);
  EXPECT_FALSE(ended->output.empty());
  for (int i = 0; i < 500 && !fs::exists(run_.verdict()); ++i)
    std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(verdict().step, 40);
  while (processes_alive() > 0) std::this_thread::sleep_for(milliseconds(20));
}

class Terminal : public Launch {
 protected:
  // On a pseudo-terminal of so many columns.
  std::string run_on_terminal(int columns, const Environment& environment) {
    const std::string command = "stty cols " + std::to_string(columns) + "; " + binary_ + " run " +
                                folder_ + "/recipe.yaml --directory " + run_.root;
    Environment all = environment_;
    all.insert(all.end(), {{"TERM", "xterm"}, {"CI", ""}});
    all.insert(all.end(), environment.begin(), environment.end());
    const auto ended = base::run_to_end({{"/usr/bin/script", "-qec", command, "/dev/null"}, all});
    return ended ? ended->output : "";
  }
};

TEST_F(Terminal, DrawsABarInPlace) {
  const std::string output = run_on_terminal(100, {{"NO_COLOR", ""}});
  EXPECT_NE(output.find("\r\x1b[K\x1b[36m[#"), std::string::npos) << output;
  EXPECT_NE(output.find("ptrain: finished"), std::string::npos) << output;
}

TEST_F(Terminal, NarrowAndWithoutColour) {
  const std::string output = run_on_terminal(12, {{"NO_COLOR", "1"}});
  EXPECT_NE(output.find("\r\x1b[K[#"), std::string::npos) << output;
  EXPECT_EQ(output.find("\x1b[36m"), std::string::npos) << output;
  std::istringstream parts(output);
  for (std::string part; std::getline(parts, part, '\r');)  // what one redraw puts on the screen
    if (part.starts_with("\x1b[K[")) {
      EXPECT_LE(part.size(), 3u + 11u) << part;
    }
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
