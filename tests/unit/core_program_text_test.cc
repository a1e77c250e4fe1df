#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/program/action.h"

namespace ptrain::program {
namespace {

std::string error_of(std::string_view line) {
  const auto action = action_from_text(line);
  EXPECT_FALSE(action) << line;
  if (action) return "";
  EXPECT_EQ(action.error().code, ExitCode::kUsage);
  return action.error().message;
}

// A number or absent.
int maybe() { return *rc::gen::inRange(-1, 40); }

Action any_action() {
  Action action;
  action.id = *rc::gen::inRange(0, 1000);
  action.lane = static_cast<Lane>(*rc::gen::inRange(0, 6));
  action.kind = static_cast<Kind>(*rc::gen::inRange(0, 18));
  action.group = maybe();
  action.stage = maybe();
  action.layer_first = maybe();
  action.copy = maybe();
  action.micro_batch = maybe();
  if (action.layer_first >= 0) {
    action.layer_last = action.layer_first + *rc::gen::inRange(0, 3);
    action.segment = maybe();
  }
  if (action.micro_batch >= 0) action.slice = maybe();
  if (*rc::gen::inRange(0, 2) == 1) action.attributes = {{"to", "1"}, {"axis", "shard"}};
  action.after = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 99));
  return action;
}

// The lines of design.md's example of a program.
TEST(ProgramText, DesignExample) {
  const Action forward = *action_from_text("1 compute FORWARD s0 l0 m0 < 0");
  EXPECT_EQ(forward.id, 1);
  EXPECT_EQ(forward.lane, Lane::kCompute);
  EXPECT_EQ(forward.kind, Kind::kForward);
  EXPECT_EQ(forward.stage, 0);
  EXPECT_EQ(forward.layer_first, 0);
  EXPECT_EQ(forward.layer_last, 0);
  EXPECT_EQ(forward.group, -1);
  EXPECT_EQ(forward.after, std::vector<int>{0});
  const Action send = *action_from_text("2 transfer SEND_F s0 m0 to=1 bytes=4096 < 1");
  EXPECT_EQ(send.kind, Kind::kSendForward);
  EXPECT_EQ(send.attribute("bytes"), "4096");
  EXPECT_EQ(send.attribute("from"), "");
}

TEST(ProgramText, EveryField) {
  const Action action = *action_from_text("7 copy_in FETCH g3 s1 l2-5.4 m6.1 *0 a=b < 3 5");
  EXPECT_EQ(action.group, 3);
  EXPECT_EQ(action.layer_first, 2);
  EXPECT_EQ(action.layer_last, 5);
  EXPECT_EQ(action.segment, 4);
  EXPECT_EQ(action.micro_batch, 6);
  EXPECT_EQ(action.slice, 1);
  EXPECT_EQ(action.copy, 0);
  EXPECT_EQ(action.after, (std::vector<int>{3, 5}));
}

RC_GTEST_PROP(ProgramText, ActionsThereAndBack, ()) {
  const Action action = any_action();
  const auto read = action_from_text(to_text(action));
  RC_ASSERT(read.has_value());
  RC_ASSERT(*read == action);
}

TEST(ProgramText, RefusedLines) {
  EXPECT_EQ(error_of(""), "no id in ''");
  EXPECT_EQ(error_of("x compute FORWARD"), "no id in 'x compute FORWARD'");
  EXPECT_EQ(error_of("0 think FORWARD"), "unknown lane in '0 think FORWARD'");
  EXPECT_EQ(error_of("0 compute FORWARDS"), "unknown kind in '0 compute FORWARDS'");
  EXPECT_EQ(error_of("0 compute FORWARD q1"), "unreadable 'q1' in '0 compute FORWARD q1'");
  EXPECT_EQ(error_of("0 compute FORWARD l"), "unreadable 'l' in '0 compute FORWARD l'");
  EXPECT_EQ(error_of("0 compute FORWARD l5-2"), "unreadable 'l5-2' in '0 compute FORWARD l5-2'");
  EXPECT_EQ(error_of("0 compute FORWARD m-1"), "unreadable 'm-1' in '0 compute FORWARD m-1'");
  EXPECT_EQ(error_of("0 compute FORWARD <"), "no list of ids after '<' in '0 compute FORWARD <'");
  for (const char* line :
       {"0 compute FORWARD m1 l2", "0 compute FORWARD l1 l1", "00 compute FORWARD",
        "0 compute FORWARD m01", "0 compute FORWARD < 1 "}) {
    EXPECT_EQ(error_of(line),
              "fields out of order, repeated or oddly spaced in '" + std::string(line) + "'");
  }
  EXPECT_FALSE(action_from_text("99999999999 compute FORWARD"));
}

constexpr std::string_view kSmall =
    "program 1 rank 3/16 shape short\n0 gather UNSHARD g0\n1 compute FORWARD s0 l0 m0 < 0\n";

TEST(ProgramText, ProgramThereAndBack) {
  const Program program = *program_from_text(kSmall);
  EXPECT_EQ(program.rank, 3);
  EXPECT_EQ(program.num_ranks, 16);
  EXPECT_EQ(program.shape, "short");
  EXPECT_EQ(to_text(program), kSmall);
}

TEST(ProgramText, ProgramErrorsNameTheLine) {
  const auto error = [](std::string_view text) { return program_from_text(text).error(); };
  EXPECT_EQ(error("program 2 rank 0/1 shape s\n").place.line, 0);
  EXPECT_EQ(error("program 2 rank 0/1 shape s\n").message,
            "line 1: 'program 2 rank 0/1 shape s' is no header of a program");
  EXPECT_FALSE(program_from_text("program 1 rank 2/2 shape s\n"));
  const Error lane = error("program 1 rank 0/1 shape s\n0 gather UNSHARD g0\n1 x\n");
  EXPECT_EQ(lane.place.line, 3);
  EXPECT_EQ(lane.message, "line 3: unknown lane in '1 x'");
  EXPECT_EQ(error("program 1 rank 0/1 shape s\n1 gather UNSHARD g0\n").message,
            "line 2: id 1 where 0 is next");
}

TEST(ProgramText, ClassHashLeavesTheRankOut) {
  Program program = *program_from_text(kSmall);
  const std::string hash = class_hash(program);
  EXPECT_EQ(hash.size(), 32u);
  program.rank = 4;
  EXPECT_EQ(class_hash(program), hash);
  program.actions[1].micro_batch = 1;
  EXPECT_NE(class_hash(program), hash);
}

}  // namespace
}  // namespace ptrain::program
