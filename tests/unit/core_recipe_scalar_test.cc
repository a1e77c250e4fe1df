#include <gtest/gtest.h>

#include "core/recipe/scalar.h"

namespace ptrain::recipe {
namespace {

tl::expected<Value, std::string> parse(const std::string& path, const std::string& text) {
  Node node;
  node.kind = Node::Kind::kScalar;
  node.text = text;
  return parse_value(*find_field(path), node);
}

double number(const std::string& text) {
  const auto value = parse("optimizer.clip_norm", text);
  return value ? std::get<double>(*value) : -1;
}

TEST(Scalar, ReadsNumbers) {
  EXPECT_EQ(number("1e-3"), 1e-3);
  EXPECT_EQ(number("1E+3"), 1000);
  EXPECT_EQ(number(".5"), 0.5);
  EXPECT_EQ(number("5."), 5);
  EXPECT_EQ(number("0.1"), 0.1);
  EXPECT_EQ(number("+2"), 2);
  EXPECT_EQ(number("0"), 0);
  EXPECT_EQ(number("-0"), 0);
}

TEST(Scalar, RefusesWhatIsNoPlainNumber) {
  for (const std::string text :
       {"", "-", ".", "e3", "1e", "1e+", "1.2.3", "1 2", "--1", "+-1", "1-", "0x1p3", "1d3", "1f",
        "\xC2\xBD", "NaN", "-inf", "1e400", "-1"}) {
    EXPECT_FALSE(parse("optimizer.clip_norm", text)) << text;
    EXPECT_FALSE(parse("log.every_steps", text)) << text;
  }
}

TEST(Scalar, IntegersHaveTheirWholeRange) {
  EXPECT_EQ(parse("seed", "9223372036854775807"), Value(std::int64_t{9223372036854775807}));
  EXPECT_FALSE(parse("seed", "9223372036854775808"));
  EXPECT_EQ(parse("seed", "0"), Value(std::int64_t{0}));
  EXPECT_FALSE(parse("seed", "-1"));
}

TEST(Scalar, EndsOfARangeMayBeOpen) {
  EXPECT_TRUE(parse("optimizer.betas.0", "0"));
  EXPECT_FALSE(parse("optimizer.betas.0", "1"));
  EXPECT_TRUE(parse("learning_rate.final", "1"));
  EXPECT_FALSE(parse("learning_rate.peak", "0"));
}

TEST(Scalar, AWordStandsForZero) {
  EXPECT_EQ(parse("cluster.ranks_per_node", "auto"), Value(std::int64_t{0}));
  EXPECT_EQ(parse("failure.hang_timeout", "auto"), Value(0.0));
  EXPECT_FALSE(parse("cluster.ranks_per_node", "0"));
  EXPECT_FALSE(parse("cluster.ranks_per_node", "Auto"));
}

}  // namespace
}  // namespace ptrain::recipe
