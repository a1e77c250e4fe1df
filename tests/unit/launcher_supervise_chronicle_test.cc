#include <gtest/gtest.h>

#include "launcher/supervise/chronicle.h"

namespace ptrain::supervise {
namespace {

using run::EventKind;

run::Event event(EventKind kind, double mono_s, int attempt, nlohmann::json fields) {
  return {kind, "2026-11-30T06:00:00.000Z", mono_s, attempt, -1, std::move(fields)};
}

TEST(Chronicle, TellsOfEachAttemptAndWhatFollowed) {
  const std::vector<run::Event> events{
      event(EventKind::kRunCreated, 0, 0, {}),
      event(EventKind::kAttemptStarted, 1, 1,
            {{"shape", "short"}, {"job", "7"}, {"nodes", {"node1", "node2"}}}),
      event(EventKind::kShapeStarted, 2, 1, {{"step", 0}}),
      event(EventKind::kCheckpointPublished, 3, 1, {{"step", 10}}),
      event(EventKind::kCheckpointPublished, 4, 1, {{"step", 20}}),
      event(EventKind::kAttemptEnded, 9.5, 1,
            {{"code", 14}, {"step", 21}, {"reason", "the node node2 does not answer any more"}}),
      event(EventKind::kDecision, 9.5, 1, {{"next", "a new attempt starts from step 20"}}),
      event(EventKind::kPlanChosen, 9.6, 1, {{"layouts", "short: dp1"}}),
      event(EventKind::kAttemptStarted, 10, 2, {{"shape", "short"}}),
      event(EventKind::kWarning, 11, 2, {{"message", "mind the gap"}}),
      event(EventKind::kAttemptEnded, 12, 2, {{"code", 0}, {"reason", "finished"}}),
      event(EventKind::kDecision, 12, 2, {{"next", ""}}),
  };
  EXPECT_EQ(chronicle(events),
            (std::vector<std::string>{
                "attempt 1 at 2026-11-30T06:00:00.000Z: shape short, Slurm job 7, on node1, node2",
                "  2 checkpoints, the last of step 20",
                "  ended after 8.5 s at step 21, from step 0: the node node2 does not answer any "
                "more (14)",
                "  then: a new attempt starts from step 20",
                "planned: short: dp1",
                "attempt 2 at 2026-11-30T06:00:00.000Z: shape short",
                "  warning: mind the gap",
                "  ended after 2.0 s before it trained: finished",
            }));
}

TEST(Chronicle, PassesOverStrangeFields) {
  for (const auto kind : {EventKind::kAttemptStarted, EventKind::kAttemptEnded, EventKind::kWarning,
                          EventKind::kDecision, EventKind::kShapeStarted})
    for (const auto& value : {nlohmann::json(), nlohmann::json(3), nlohmann::json("x"),
                              nlohmann::json::array({1, "a"})}) {
      nlohmann::json fields;
      for (const char* name :
           {"shape", "job", "nodes", "code", "step", "reason", "next", "message"})
        fields[name] = value;
      (void)chronicle(std::vector<run::Event>{event(kind, 0, 1, fields)});
    }
}

TEST(Chronicle, Goodput) {
  EXPECT_EQ(goodput_text(0, 0), "");
  EXPECT_EQ(goodput_text(30, 40),
            "trained for 30.0 s of 40.0 s in which machines were held (75 %)");
}

}  // namespace
}  // namespace ptrain::supervise
