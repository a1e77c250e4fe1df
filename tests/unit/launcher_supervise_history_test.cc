#include <gtest/gtest.h>

#include "launcher/supervise/history.h"

namespace ptrain::supervise {
namespace {

using Nodes = std::vector<std::string>;

run::Event event(run::EventKind kind, nlohmann::json fields) {
  return {kind, "", 0, 1, -1, std::move(fields)};
}

Failure lost(const std::string& job, const std::string& node) {
  return {job, ExitCode::kNodeLost, -1, 12, 10, {node}};
}

std::vector<run::Event> events_of(const Failure& failure) {
  run::Verdict verdict;
  verdict.code = failure.code;
  verdict.step = failure.step;
  verdict.nodes = failure.nodes;
  const Decision decision{AfterAttempt::kRestart, failure.code, "again", 0, failure.nodes};
  return {event(run::EventKind::kAttemptEnded, to_fields(verdict, failure)),
          event(run::EventKind::kDecision, to_fields(decision, failure.job))};
}

TEST(History, ComesBackFromEvents) {
  const auto history = history_of(events_of(lost("7", "node2")), "7");
  EXPECT_EQ(history.failures, std::vector<Failure>{lost("7", "node2")});
  EXPECT_EQ(history.excluded, Nodes{"node2"});
  EXPECT_EQ(history.offenders, Nodes{});
  EXPECT_EQ(num_failures_of(history, "7"), 1);
}

TEST(History, AnotherJobTriesANodeAgainButNotAThirdTime) {
  auto events = events_of(lost("7", "node2"));
  EXPECT_EQ(history_of(events, "8").excluded, Nodes{});
  EXPECT_EQ(num_failures_of(history_of(events, "8"), "8"), 0);
  for (auto& one : events_of(lost("8", "node2"))) events.push_back(one);
  const auto history = history_of(events, "9");
  EXPECT_EQ(history.offenders, Nodes{"node2"});
  const Nodes all{"node1", "node2", "node3"};
  EXPECT_EQ(usable_nodes(all, history, 2), (Nodes{"node1", "node3"}));
  EXPECT_EQ(usable_nodes(all, history, 3), all);  // better than too few
}

TEST(History, SuccessesAndStrangeFieldsAreNoFailures) {
  std::vector<run::Event> events;
  for (const auto& code : {nlohmann::json(0), nlohmann::json(20), nlohmann::json("x"),
                           nlohmann::json(99), nlohmann::json()})
    events.push_back(event(run::EventKind::kAttemptEnded, {{"code", code}}));
  events.push_back(event(run::EventKind::kDecision, {{"exclude", {1, nullptr}}}));
  events.push_back(event(run::EventKind::kDecision, {{"exclude", "node1"}}));
  EXPECT_EQ(history_of(events, ""), History{});
}

}  // namespace
}  // namespace ptrain::supervise
