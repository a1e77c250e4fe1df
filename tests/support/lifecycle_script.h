#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <utility>
#include <vector>

#include "launcher/supervise/lifecycle.h"

namespace ptrain::supervise {

// A lifecycle of `num_ranks` ranks with a clock moved by hand; what it asked for is counted.
class Script {
 public:
  explicit Script(int num_ranks = 2, double hang_s = 10)
      : num_ranks_(num_ranks), lifecycle_(1, nodes_of(num_ranks), hang_s, 0) {}

  Script& at(double now) {
    now_ = now;
    return *this;
  }

  Script& feed(const Input& input) {
    for (const auto& output : lifecycle_.on(now_, input)) {
      if (std::holds_alternative<KillAll>(output)) ++num_kills;
      if (std::holds_alternative<AskStacks>(output)) ++num_asked;
      if (const auto* stop = std::get_if<SendStop>(&output)) stops.push_back(*stop);
      if (const auto* record = std::get_if<Record>(&output)) records.push_back(*record);
    }
    return *this;
  }

  Script& hello() {
    for (int rank = 0; rank < num_ranks_; ++rank)
      feed(RankSaid{rank, run::Hello{"t", 1, rank, 100 + rank, "h", "b"}});
    return *this;
  }
  Script& step(std::int64_t step, double seconds = 1) {
    run::StepDone done{step, "s"};
    done.step_s = seconds;
    return feed(RankSaid{0, done});
  }
  Script& beat(int rank, std::int64_t step, std::string phase, std::string collective = "",
               bool waiting = false) {
    return feed(
        RankSaid{rank, run::Heartbeat{step, std::move(phase), std::move(collective), waiting, 0}});
  }
  Script& goodbye(int rank, ExitCode code, std::string next = "") {
    feed(RankSaid{rank, run::Goodbye{code, "because", std::move(next)}});
    return feed(RankGone{rank});
  }
  Script& unreachable(int rank) { return feed(RankGone{rank, true}); }
  Script& gone(int rank) { return feed(RankGone{rank}); }
  Script& ended(int code, start::LauncherReport report = {}, std::string out_of_memory = "") {
    return feed(LauncherEnded{{code, 0}, report, out_of_memory});
  }
  Script& interrupt() { return feed(StopAsked{"signal INT", SIGINT, false}); }
  Script& tick() { return feed(Tick{}); }

  const run::Verdict& verdict() const {
    EXPECT_TRUE(lifecycle_.ended());
    return lifecycle_.verdict();
  }
  const Lifecycle& lifecycle() const { return lifecycle_; }

  int num_kills = 0, num_asked = 0;
  std::vector<SendStop> stops;
  std::vector<Record> records;

 private:
  // "node0", "node0", "node1" ...
  static std::vector<std::string> nodes_of(int num_ranks) {
    std::vector<std::string> nodes;
    for (int rank = 0; rank < num_ranks; ++rank) nodes.push_back("node" + std::to_string(rank / 2));
    return nodes;
  }

  int num_ranks_;
  double now_ = 0;
  Lifecycle lifecycle_;
};

}  // namespace ptrain::supervise
