#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "launcher/parity/text.h"

namespace ptrain::parity {
namespace {

ShapeParity compared(double relative) {
  ShapeParity shape{"short", {}, 1536, {}};
  StageResult rows;
  rows.num_compared = 6;
  StageResult forward;
  forward.stage = Stage::kForward;
  forward.num_compared = 10;
  forward.largest = {{Stage::kForward, 3, 1}, "block 2", relative, 1e-5};
  forward.num_different = forward.largest.differs() ? 1 : 0;
  shape.comparison.stages = {rows, forward};
  if (forward.largest.differs()) shape.comparison.first_segment = forward.largest;
  return shape;
}

TEST(ParityText, Equal) {
  EXPECT_EQ(to_text(compared(2.5e-7)),
            "shape short: mb1x1 beside one rank, 1536 tokens\n"
            "  compared          tensors different     largest  tolerance  where\n"
            "  rows                   6         0           0          0\n"
            "  forward               10         0     2.5e-07      1e-05  forward: block 2, "
            "micro-batch 1\n"
            "equal\n");
}

TEST(ParityText, Different) {
  const std::string text = to_text(compared(0.3));
  EXPECT_NE(text.find("DIFFERENT\n  first segment: forward: block 2, micro-batch 1: apart by "
                      "3.0e-01, allowed 1e-05\n"),
            std::string::npos)
      << text;
}

TEST(ParityText, JsonHoldsWhatIsNoNumber) {
  Outcome outcome;
  outcome.verdict.code = ExitCode::kRankError;
  outcome.shapes = {compared(std::nan(""))};
  const auto json = nlohmann::json::parse(to_json(outcome).dump());
  EXPECT_EQ(json["code"], 10);
  EXPECT_EQ(json["shapes"][0]["equal"], false);
  EXPECT_EQ(json["shapes"][0]["first_segment"]["relative"], "nan");
  EXPECT_TRUE(json["shapes"][0]["first_parameter"].is_null());
}

}  // namespace
}  // namespace ptrain::parity
