#include <gtest/gtest.h>

#include "core/model/context_exchanges.h"
#include "tests/support/small_model.h"

namespace ptrain::model {
namespace {

// Eight heads of four columns each, in float32.
Architecture shared_by(int ring, int ulysses, std::int64_t kv_heads = 8) {
  recipe::Model config = support::small_sizes();
  config.family = "llama";
  config.num_attention_heads = 8;
  config.num_key_value_heads = kv_heads;
  Architecture architecture = *make_architecture(config, DType::kFloat32);
  architecture.ring.size = ring;
  architecture.ulysses.size = ulysses;
  return architecture;
}

std::vector<std::int64_t> bytes_of(const std::vector<ExchangeSpec>& exchanges) {
  std::vector<std::int64_t> bytes;
  for (const ExchangeSpec& exchange : exchanges) bytes.push_back(exchange.bytes_per_token);
  return bytes;
}

TEST(ContextExchanges, RanksWithWholeRowsHaveNone) {
  for (const Call call : {Call::kForward, Call::kBackward, Call::kRecompute, Call::kRemake})
    EXPECT_TRUE(context_exchanges(shared_by(1, 1), call).empty());
}

// A rank's tokens stay as many where rows and ranks double, and so do the bytes that it gives: all
// columns of queries, keys and values, then those of the output; in backward these and twice the
// outputs, then gradients.
TEST(ContextExchanges, UlyssesBytesOfARankStayFlat) {
  for (const int ulysses : {2, 4, 8}) {
    const auto part = shared_by(1, ulysses);
    EXPECT_EQ(bytes_of(context_exchanges(part, Call::kForward)),
              (std::vector<std::int64_t>{4 * 3 * 32, 4 * 32}));
    EXPECT_EQ(bytes_of(context_exchanges(part, Call::kBackward)),
              (std::vector<std::int64_t>{4 * 5 * 32, 4 * 3 * 32}));
  }
}

// Two heads of keys and values, of four columns, for eight ranks: four copies of each.
TEST(ContextExchanges, HeadsOfKeysAreCopiedWhereTheyAreFew) {
  EXPECT_EQ(bytes_of(context_exchanges(shared_by(1, 8, 2), Call::kForward)),
            (std::vector<std::int64_t>{4 * (32 + 4 * 2 * 8), 4 * 32}));
}

TEST(ContextExchanges, KeysAndValuesGoAroundARing) {
  const auto part = shared_by(4, 1, 2);
  const std::int64_t key_value = 4 * 2 * 8;
  EXPECT_EQ(bytes_of(context_exchanges(part, Call::kForward)),
            (std::vector<std::int64_t>{key_value, key_value, key_value, 0}));
  // Their gradients follow a step later, and then go home: four shifts of those, three of these.
  EXPECT_EQ(bytes_of(context_exchanges(part, Call::kBackward)),
            (std::vector<std::int64_t>{key_value, 2 * key_value, 2 * key_value, key_value,
                                       key_value, 0}));
  EXPECT_TRUE(context_exchanges(part, Call::kRemake).empty());
}

TEST(ContextExchanges, AProductTurnsTheRingInsideTheHeads) {
  const auto exchanges = context_exchanges(shared_by(2, 2), Call::kForward);
  ASSERT_EQ(exchanges.size(), 4u);
  EXPECT_EQ(exchanges[0].kind, ExchangeKind::kAllToAll);
  EXPECT_EQ(exchanges[1].kind, ExchangeKind::kShift);
  EXPECT_EQ(exchanges[1].axis, ExchangeAxis::kRing);
  EXPECT_EQ(exchanges[1].bytes_per_token, 4 * 2 * 32);  // half the heads of twice the tokens
  EXPECT_EQ(exchanges[2].kind, ExchangeKind::kArrival);
  EXPECT_EQ(exchanges[3].axis, ExchangeAxis::kUlysses);
}

// Between those of the tensor axis, whose parts of heads they are about.
TEST(ContextExchanges, AreMadeAfterProjectionAndBeforeTheOutput) {
  auto part = shared_by(1, 2);
  part.tensor.size = 2;
  std::string kinds;
  for (const auto& exchange : exchanges_of(part, part.layers[1], Call::kForward))
    kinds += std::string(to_string(exchange.axis)) + " ";
  EXPECT_EQ(kinds, "tp ulysses ulysses tp tp tp ");
}

}  // namespace
}  // namespace ptrain::model
