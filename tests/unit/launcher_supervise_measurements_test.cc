#include <gtest/gtest.h>

#include "launcher/supervise/measurements.h"

namespace ptrain::supervise {
namespace {

constexpr std::int64_t kMebi = 1 << 20;

run::Plan planned() {
  run::Plan plan;
  auto& shape = plan.shapes.emplace_back();
  shape.name = "short";
  shape.predicted.step_s = 0.1;
  shape.predicted.tokens_per_s = 10000;
  program::BytesByClass bytes{};
  bytes[static_cast<std::size_t>(program::MemoryClass::kParameters)] = Bytes{4 * kMebi};
  bytes[static_cast<std::size_t>(program::MemoryClass::kStash)] = Bytes{10 * kMebi};
  bytes[static_cast<std::size_t>(program::MemoryClass::kRuntime)] = Bytes{186 * kMebi};
  shape.predicted.classes = {{2, "h", bytes}};
  return plan;
}

Measurements three_steps() {
  Measurements measurements;
  for (const double seconds : {9.0, 0.12, 0.11}) {  // the first is slow: the median says 0.12
    run::StepDone done{1, "short"};
    done.step_s = seconds;
    done.tokens_per_s = 1000 / seconds;
    done.bytes_peak = 220 * kMebi;
    measurements.step(done);
  }
  return measurements;
}

TEST(Measurements, StandBesideThePrediction) {
  Measurements measurements = three_steps();
  measurements.shape_finished(
      {{"shape", "short"}, {"bytes", {{"parameters", 4 * kMebi}, {"stash", 11 * kMebi}}}});
  const std::vector<std::string> expected{"  shape short        predicted    measured",
                                          "  step time           100.0 ms    120.0 ms   +20.0 %",
                                          "  tokens/s               10.0k        8.3k   -16.7 %",
                                          "  parameters          4.00 MiB    4.00 MiB   exact",
                                          "  stash               10.0 MiB    11.0 MiB   +10.0 %",
                                          "  memory of a rank     200 MiB     220 MiB   +10.0 %"};
  EXPECT_EQ(measurements.beside(planned()), expected);
}

TEST(Measurements, StepsThatAreTooFastQuestionTheFigures) {
  run::Plan plan = planned();
  plan.shapes[0].predicted.low_s = 0.11;
  EXPECT_EQ(three_steps().beside(plan).size(), 4u);
  plan.shapes[0].predicted.low_s = 0.13;
  const auto lines = three_steps().beside(plan);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_NE(lines.back().find("`ptrain plan RECIPE --probe`"), std::string::npos);
}

TEST(Measurements, AShapeThatDidNotFinishHasNoBytesByClass) {
  EXPECT_EQ(three_steps().beside(planned()).size(), 4u);
}

TEST(Measurements, NothingRanNothingIsShown) {
  EXPECT_TRUE(Measurements{}.beside(planned()).empty());
  Measurements odd;
  odd.shape_finished({{"shape", 3}, {"bytes", "x"}});
  EXPECT_TRUE(odd.beside(planned()).empty());
}

}  // namespace
}  // namespace ptrain::supervise
