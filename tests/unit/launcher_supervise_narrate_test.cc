#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "launcher/supervise/narrate.h"

namespace ptrain::supervise {
namespace {

using Lines = std::vector<std::string>;
using nlohmann::json;
using run::EventKind;

TEST(Narrate, ValidationStandsBesideSimplerModels) {
  EXPECT_EQ(event_lines(EventKind::kValidation, {{"step", 300}, {"loss", 2.01}}),
            Lines{"step 300: validation loss 2.0100 nats a token"});
  EXPECT_EQ(event_lines(EventKind::kValidation,
                        {{"step", 9}, {"loss", 2.01}, {"bigram", 2.5}, {"unigram", 3.69}}),
            Lines{"step 9: validation loss 2.0100 nats a token (bigram entropy 2.5000, unigram "
                  "3.6900)"});
}

TEST(Narrate, ASampleKeepsItsLines) {
  EXPECT_EQ(event_lines(EventKind::kValidation, {{"step", 9}, {"sample", "int a;\n\n b"}}),
            (Lines{"a sample of what the model writes:", "  | int a;", "  | ", "  |  b"}));
}

TEST(Narrate, AFailedCheckpointIsLoud) {
  const auto lines = event_lines(EventKind::kCheckpointFailed,
                                 {{"step", 7}, {"message", "no space left on device"}});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].starts_with("WARNING: step 7: "));
  EXPECT_NE(lines[0].find("no space left on device"), std::string::npos);
}

TEST(Narrate, ShapesSayWhereTheyBeginAndFromWhat) {
  const json fresh{{"shape", "short"}, {"step", 0}, {"last_step", 1200}, {"total_steps", 1500}};
  EXPECT_EQ(event_lines(EventKind::kShapeStarted, fresh),
            Lines{"shape short: steps 1 to 1200 of 1500"});
  json continued = fresh;
  continued["step"] = 300;
  continued["checkpoint"] = "/r/checkpoints/step-00000300";
  EXPECT_EQ(event_lines(EventKind::kShapeStarted, continued),
            Lines{"shape short: steps 301 to 1200 of 1500, from /r/checkpoints/step-00000300"});
}

TEST(Narrate, CutDocumentsAreCounted) {
  const json fields{{"shape", "a"},     {"step", 0},       {"last_step", 4},
                    {"total_steps", 4}, {"documents", 10}, {"cut_documents", 3}};
  EXPECT_EQ(event_lines(EventKind::kShapeStarted, fields),
            Lines{"shape a: steps 1 to 4 of 4; 3 of 10 documents are longer than a row and are "
                  "cut"});
}

// A rank may send anything; nothing of it may end the supervisor.
TEST(Narrate, FieldsOfWrongTypesAreSurvived) {
  const json odd{{"step", "x"},     {"loss", json::array()}, {"message", 3},
                 {"bigram", "nan"}, {"sample", 1},           {"now", "yes"}};
  for (const auto kind : {EventKind::kShapeStarted, EventKind::kValidation, EventKind::kWarning,
                          EventKind::kCheckpointPublished, EventKind::kStopRequested}) {
    EXPECT_NO_THROW(event_lines(kind, odd));
    EXPECT_NO_THROW(event_lines(kind, json::object()));
  }
}

TEST(Narrate, LayoutsInWords) {
  mesh::Layout layout;
  layout.micro_batch = 6;
  EXPECT_EQ(in_words(layout), "1 rank; a step is 1 micro-batch of 6 rows a rank");
  layout.dp = 2;
  EXPECT_EQ(in_words(layout), "2 ranks, each a replica; a step is 1 micro-batch of 6 rows a rank");
  layout.shard = 4;
  layout.zero = 3;
  layout.micro_batch = 1;
  layout.num_micro_batches = 2;
  EXPECT_EQ(in_words(layout),
            "8 ranks as 2 replicas of 4 shards (ZeRO 3); a step is 2 "
            "micro-batches of 1 row a rank");
}

TEST(Narrate, QuantitiesForPeople) {
  EXPECT_EQ(short_number(950), "950");
  EXPECT_EQ(short_number(12345), "12.3k");
  EXPECT_EQ(short_number(2.5e6), "2.50M");
  EXPECT_EQ(short_bytes(1.5 * (1 << 30)), "1.50 GiB");
  EXPECT_EQ(short_bytes(3.25 * (1 << 20)), "3.25 MiB");
  EXPECT_EQ(short_duration(0.0153), "15.3 ms");
  EXPECT_EQ(short_duration(2.5), "2.50 s");
}

}  // namespace
}  // namespace ptrain::supervise
