#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

#include "core/run/control.h"

namespace ptrain::run {
namespace {

void expect_round_trip(const ControlMessage& message) {
  const std::string line = to_line(message);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto read = message_from_line(std::string_view(line).substr(0, line.size() - 1));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, message);
}

TEST(Control, EveryKindComesBack) {
  expect_round_trip(Hello{"t\"\n", 2, 3, 4, "host", "0.1-ab", "0-3,8"});
  expect_round_trip(
      Heartbeat{7, "step", "dp all_gather#12", true, std::int64_t{1} << 40, 9.5, 0.5, 1.25, 2e-4});
  expect_round_trip(StepDone{5, "short", 2.5, 0.1, 1e-3, 10, 20, 0.3, 33.3, 0.5, 1 << 20});
  expect_round_trip(EventMessage{EventKind::kValidation, {{"loss", 1.5}, {"a", {1, 2}}}});
  expect_round_trip(Goodbye{ExitCode::kNonFinite, "bad", ""});
  expect_round_trip(Goodbye{ExitCode::kDone, "", "long"});
  expect_round_trip(Stop{false, "signal INT"});
  expect_round_trip(ShowStacks{});
}

TEST(Control, NumbersThatJsonLacksComeBack) {
  StepDone done{1, "s"};
  done.loss = std::numeric_limits<double>::quiet_NaN();
  done.grad_norm = -std::numeric_limits<double>::infinity();
  const auto read = message_from_line(to_line(done));
  ASSERT_TRUE(read);
  EXPECT_TRUE(std::isnan(std::get<StepDone>(*read).loss));
  EXPECT_EQ(std::get<StepDone>(*read).grad_norm, done.grad_norm);
}

TEST(Control, WhatIsNotAMessageIsRefused) {
  const char* refused[] = {
      "",
      "{",
      "[]",
      "7",
      "{}",
      R"({"type":"party"})",
      R"({"type":7})",
      R"({"type":"stop","checkpoint":1,"reason":""})",                 // not a boolean
      R"({"type":"goodbye","code":99,"message":"","next_shape":""})",  // no such code
      R"({"type":"event","kind":"party","fields":{}})",
      R"({"type":"event","kind":"warning","fields":[]})",
      R"({"type":"heartbeat","step":1.5,"phase":"","collective":"","waiting":false,)"
      R"("resident_bytes":0,"steps_s":0,"data_s":0,"waited_s":0,"round_trip_s":0})",
      R"({"type":"heartbeat","step":18446744073709551615,"phase":"","collective":"",)"
      R"("waiting":false,"resident_bytes":0,"steps_s":0,"data_s":0,"waited_s":0,)"
      R"("round_trip_s":0})"};
  for (const char* line : refused) EXPECT_FALSE(message_from_line(line)) << line;
}

TEST(Control, LongAndDeepLinesAreRefused) {
  EXPECT_FALSE(message_from_line(std::string(kMaxControlLine + 1, ' ')));
  std::string deep = R"({"type":"event","kind":"warning","fields":{"a":)";
  deep += std::string(5000, '[') + std::string(5000, ']') + "}}";
  EXPECT_FALSE(message_from_line(deep));
}

// A sample of 2^20 tokens, each of which takes six bytes in JSON, beside what must not suffer.
TEST(Control, LongTextsAreCutSoThatTheLineFits) {
  const std::string sample(std::size_t{1} << 20, '\x01');
  const EventMessage event{EventKind::kValidation, {{"loss", 1.5}, {"sample", sample}}};
  const std::string line = to_line(event);
  EXPECT_LE(line.size(), kMaxControlLine);
  EXPECT_GT(line.size(), kMaxControlLine / 3);
  const auto read = message_from_line(std::string_view(line).substr(0, line.size() - 1));
  ASSERT_TRUE(read) << read.error().message;
  const auto& fields = std::get<EventMessage>(*read).fields;
  EXPECT_EQ(fields["loss"], 1.5);
  EXPECT_TRUE(fields["sample"].get<std::string>().ends_with(" ... (cut)"));
  EXPECT_LE(to_line(Goodbye{ExitCode::kBug, sample, "long"}).size(), kMaxControlLine);
  EXPECT_LE(to_line(EventMessage{EventKind::kWarning, {{"a", {1, {{"b", sample}}}}}}).size(),
            kMaxControlLine);
}

RC_GTEST_PROP(Control, AnyBytesGiveAMessageOrAnError, (const std::string& bytes)) {
  (void)message_from_line(bytes);
}

// A valid line with one byte changed is never read as something that cannot be written again.
RC_GTEST_PROP(Control, DamagedLinesAreReadWholeOrRefused, (std::uint8_t byte, std::size_t at)) {
  std::string line = to_line(StepDone{5, "short", 2.5, 0.1, 1e-3, 10, 20, 0.3, 33.3, 0.5, 1 << 20});
  line[at % line.size()] = static_cast<char>(byte);
  const auto read = message_from_line(line);
  if (!read) return;
  RC_ASSERT(message_from_line(to_line(*read)).has_value());
}

}  // namespace
}  // namespace ptrain::run
