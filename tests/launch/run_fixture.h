#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "core/run/directory.h"
#include "core/run/event.h"
#include "launcher/base/subprocess.h"

namespace ptrain {

// A temporary folder with a recipe, and the real command run on it as a user would. When a test
// ends, no process may be left that names the folder.
class RunFixture : public testing::Test {
 protected:
  using Clock = std::chrono::steady_clock;
  using Environment = std::vector<std::pair<std::string, std::string>>;

  explicit RunFixture(std::string binary) : binary_(std::move(binary)) {}
  void SetUp() override;
  void TearDown() override;

  void write(const std::string& name, const std::string& text) const;  // in the folder
  std::string read(const std::string& path) const;

  base::Subprocess start(std::vector<std::string> arguments, const std::string& fake = "") const;
  base::Subprocess start_run(const std::string& fake, std::vector<std::string> more = {}) const;

  // Waits for the end, at most 60 s; what it wrote is in output_, the seconds since `since_` in
  // took_. Returns its code, or minus the signal that killed it.
  int end_of(base::Subprocess process);
  int run_command(std::vector<std::string> arguments, const std::string& fake = "");
  int run_recipe(std::vector<std::string> more = {}) { return end_of(start_run("", more)); }

  // Until `num` events of the kind are there, at most 30 s; then sets since_.
  void wait_for(run::EventKind kind, int num);
  void wait_until_ready() { wait_for(run::EventKind::kRankReady, 2); }
  void wait_for_step(std::int64_t step);  // in metrics.jsonl

  bool said(const std::string& text) const { return output_.find(text) != std::string::npos; }
  std::vector<run::Event> events(run::EventKind kind) const;
  int count(run::EventKind kind) const { return static_cast<int>(events(kind).size()); }
  int pid_of(int rank) const;  // of the last attempt
  int processes_alive() const;
  run::Verdict verdict() const;

  std::vector<std::string> prefix_;  // a program that starts the command
  std::string binary_;
  std::string folder_, output_, once_;
  Environment environment_;  // of the commands
  run::Directory run_;
  Clock::time_point since_ = Clock::now();
  double took_ = 0;
};

}  // namespace ptrain
