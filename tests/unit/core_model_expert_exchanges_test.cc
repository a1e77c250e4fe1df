#include <gtest/gtest.h>

#include "core/model/expert_exchanges.h"
#include "tests/support/small_model.h"

namespace ptrain::model {
namespace {

constexpr std::int64_t kHidden = 16;

Architecture shared_by(const char* family, int tensor, int ring, int ulysses,
                       double capacity_factor = 0) {
  recipe::Model config = support::small_model(family);
  config.expert_capacity_factor = capacity_factor;
  Architecture architecture = *make_architecture(config, DType::kBFloat16);
  architecture.tensor.size = tensor;
  architecture.ring.size = ring;
  architecture.ulysses.size = ulysses;
  return architecture;
}

// Of the last block, which has experts in every family; the head is behind it.
std::vector<ExchangeSpec> exchanges_of(const Architecture& part, Call call) {
  return expert_exchanges(part, part.layers[part.layers.size() - 2], call);
}

// "AXIS KIND BYTES" of each.
std::string text_of(const std::vector<ExchangeSpec>& exchanges) {
  std::string text;
  for (const ExchangeSpec& exchange : exchanges)
    text += std::string(text.empty() ? "" : ", ") + std::string(to_string(exchange.axis)) + " " +
            std::string(to_string(exchange.kind)) + " " + std::to_string(exchange.bytes_per_token);
  return text;
}

const std::string kGathered = "tp all_gather " + std::to_string(2 * kHidden);
const std::string kSummed = "tp reduce_scatter " + std::to_string(4 * kHidden);

TEST(ExpertExchanges, RanksWithWholeRowsHaveNone) {
  const auto whole = shared_by("deepseek_v3", 1, 1, 1, 0.8);
  for (const Call call :
       {Call::kForward, Call::kEvaluate, Call::kBackward, Call::kRecompute, Call::kRemake})
    EXPECT_TRUE(exchanges_of(whole, call).empty());
}

// Tokens go nowhere: only the numbers of the experts that they chose, two a token, do.
TEST(ExpertExchanges, ChoicesAreGatheredOverTheRanksOfARow) {
  const auto part = shared_by("mixtral", 2, 2, 2);
  EXPECT_EQ(text_of(exchanges_of(part, Call::kForward)), "");
  EXPECT_EQ(text_of(exchanges_of(part, Call::kRecompute)), "");
  // Four ranks' tokens where a context rank counts its own.
  EXPECT_EQ(text_of(exchanges_of(part, Call::kBackward)), "rows all_gather 32");
}

TEST(ExpertExchanges, ThoseWithLimitedRoomGatherThemToDropTokensToo) {
  const auto part = shared_by("mixtral", 2, 1, 1, 0.8);
  EXPECT_EQ(text_of(exchanges_of(part, Call::kForward)), "rows all_gather 8");
  EXPECT_EQ(text_of(exchanges_of(part, Call::kEvaluate)), "rows all_gather 8");
  EXPECT_EQ(text_of(exchanges_of(part, Call::kRecompute)), "");
  EXPECT_EQ(text_of(exchanges_of(part, Call::kBackward)), "rows all_gather 8");
}

// As those of an MLP: two a direction, and the input again for the gradients of weights.
TEST(ExpertExchanges, SharedExpertsAreSplitOverTheTensorAxis) {
  const auto part = shared_by("deepseek_v2", 4, 1, 1);
  EXPECT_EQ(text_of(exchanges_of(part, Call::kForward)), kGathered + ", " + kSummed);
  EXPECT_EQ(text_of(exchanges_of(part, Call::kRecompute)), kGathered);
  EXPECT_EQ(text_of(exchanges_of(part, Call::kBackward)),
            kGathered + ", " + kSummed + ", rows all_gather 12, " + kGathered);
  EXPECT_EQ(text_of(exchanges_of(shared_by("deepseek_v2", 1, 2, 1), Call::kForward)), "");
}

// Of two choices a token, each to the two ranks with columns of its expert: rows in bf16, and what
// experts make of them in fp32; backward the gradient and the input, with a weight, and gradients.
TEST(ExpertExchanges, RowsTravelToTheRanksOfTheirExperts) {
  auto part = shared_by("mixtral", 1, 1, 1);
  part.experts = {.ep = 5, .etp = 2};
  const std::string rows = "ep all_to_all " + std::to_string(2 * 2 * kHidden * 2);
  const std::string back = "ep all_to_all " + std::to_string(2 * 2 * kHidden * 4);
  EXPECT_EQ(text_of(exchanges_of(part, Call::kForward)), "ep all_to_all 0, " + rows + ", " + back);
  EXPECT_EQ(text_of(exchanges_of(part, Call::kRecompute)), rows);
  EXPECT_EQ(text_of(exchanges_of(part, Call::kRemake)), "");
  EXPECT_EQ(text_of(exchanges_of(part, Call::kBackward)),
            "ep all_to_all " + std::to_string(2 * 2 * (2 * kHidden * 2 + 4)) + ", ep all_to_all " +
                std::to_string(2 * 2 * (kHidden + 1) * 4));
}

// First of the feed-forward, then of attention.
TEST(ExpertExchanges, AreThoseOfTheirBlocksBackward) {
  const auto part = shared_by("deepseek_v2", 2, 2, 1);
  std::string axes[2];
  for (const std::size_t block : {1, 2})
    for (const auto& exchange : exchanges_of(part, part.layers[block], Call::kBackward))
      axes[block - 1] += std::string(to_string(exchange.axis)) + " ";
  EXPECT_EQ(axes[0], "tp tp tp tp ring ring ring ring tp tp ");  // of an MLP
  EXPECT_EQ(axes[1], "tp tp rows tp tp ring ring ring ring tp tp ");
}

}  // namespace
}  // namespace ptrain::model
