#include <gtest/gtest.h>

#include "launcher/supervise/progress.h"

namespace ptrain::supervise {
namespace {

run::StepDone example() {
  run::StepDone done{40, "short", 2.10424};
  done.learning_rate = 1.2e-3;
  done.tokens_per_s = 12345;
  done.mfu = 0.31;
  done.bytes_peak = std::int64_t{3} << 29;  // 1.5 GiB
  return done;
}

constexpr const char* kPlain =
    "step 40/1500 short  loss 2.1042  lr 1.2e-03  12.3k tokens/s  MFU 31.0%  1.50 GiB  3m05s left";

TEST(Progress, PlainLines) {
  EXPECT_EQ(render(example(), 1500, 185, {false, false, 80}), std::string(kPlain) + "\n");
}

TEST(Progress, ABarIsRedrawnInPlaceAndCutToTheWidth) {
  const std::string bar = "[--------------------] ";  // 40 of 1500 is less than one of 20 parts
  EXPECT_EQ(render(example(), 1500, 185, {true, false, 200}), "\r\x1b[K" + bar + kPlain);
  EXPECT_EQ(render(example(), 80, 185, {true, false, 24}), "\r\x1b[K[##########----------] ");
  EXPECT_EQ(render(example(), 80, 185, {true, true, 9}), "\r\x1b[K\x1b[36m[#######\x1b[0m");
}

TEST(Progress, NamesCannotSteerTheTerminal) {
  auto done = example();
  done.shape = "a\x1b[2Jb\n";
  const std::string line = render(done, 1500, 185, {false, false, 80});
  EXPECT_EQ(line.find('\x1b'), std::string::npos);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
}

TEST(Progress, TimeThatIsUnknownIsNotInvented) {
  EXPECT_NE(render(example(), 1500, -1, {}).find("? left"), std::string::npos);
  EXPECT_NE(render(example(), 1500, 7322, {}).find("2h02m left"), std::string::npos);
}

}  // namespace
}  // namespace ptrain::supervise
