#include <gtest/gtest.h>

#include <limits>

#include "core/run/directory.h"
#include "core/run/event.h"
#include "core/run/request.h"

namespace ptrain::run {
namespace {

TEST(Event, ComesBack) {
  const Event event{EventKind::kRankLost,
                    "2026-01-02T03:04:05.678Z",
                    1.5,
                    2,
                    3,
                    {{"signal", 9}, {"what", "killed"}}};
  const auto json = to_json(event);
  EXPECT_EQ(json["kind"], "rank_lost");
  EXPECT_EQ(json["v"], 1);
  const auto read = event_from_json(json);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, event);
}

TEST(Event, UnknownKindsAndVersionsAreRefused) {
  auto json = to_json(Event{});
  json["kind"] = "party";
  EXPECT_FALSE(event_from_json(json));
  json = to_json(Event{});
  json["v"] = 2;
  EXPECT_FALSE(event_from_json(json));
  json = to_json(Event{});
  json.erase("rank");
  EXPECT_FALSE(event_from_json(json));
}

TEST(Event, EveryKindHasOneName) {
  for (int i = 0; i <= static_cast<int>(EventKind::kRunEnded); ++i) {
    const auto kind = static_cast<EventKind>(i);
    ASSERT_FALSE(to_string(kind).empty()) << i;
    EXPECT_EQ(event_kind_from(to_string(kind)), kind);
  }
}

TEST(Event, FieldsKeepNumbersThatJsonLacks) {
  Event event;
  event.fields = {{"loss", std::numeric_limits<double>::infinity()}};
  EXPECT_EQ(to_json(event)["loss"], "inf");
}

TEST(Verdict, ComesBackAndChecksItsCode) {
  const Verdict verdict{
      ExitCode::kHang, "rank 1: no progress", "resume", 2, 1, 0, 77, {"node1"}, 9.5, 7.25};
  EXPECT_EQ(verdict_from_json(to_json(verdict)), verdict);
  auto json = to_json(verdict);
  json["code"] = 130;  // ptrain itself ended by INT
  EXPECT_TRUE(verdict_from_json(json));
  json["code"] = 42;
  EXPECT_FALSE(verdict_from_json(json));
  json = to_json(verdict);
  json["nodes"] = {1};
  EXPECT_FALSE(verdict_from_json(json));
  for (const char* added : {"nodes", "held_s", "trained_s"}) json.erase(added);
  EXPECT_TRUE(verdict_from_json(json));  // of an earlier version
}

TEST(Request, ComesBack) {
  const Request request{Mode::kTrain, "/runs/a b", 3, "long", "127.0.0.1", 4000, "/c/out.json", {}};
  EXPECT_EQ(request_from_json_text(to_json_text(request)), request);
  EXPECT_FALSE(request_from_json_text("{\"mode\":\"party\"}"));
  EXPECT_FALSE(request_from_json_text("nonsense"));
}

TEST(Directory, NamesItsFiles) {
  const Directory run{"/r"};
  EXPECT_EQ(run.checkpoint(42), "/r/checkpoints/step-00000042");
  EXPECT_EQ(run.rank_log(2, 5), "/r/logs/attempt-2/rank-5.log");
  EXPECT_EQ(run.attempt_plan(1), "/r/logs/attempt-1/plan.json");
}

}  // namespace
}  // namespace ptrain::run
