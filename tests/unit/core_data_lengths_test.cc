#include <gtest/gtest.h>

#include "core/data/lengths.h"

namespace ptrain::data {
namespace {

TEST(Lengths, CountsExactlyBelow64) {
  LengthCounter counter;
  for (const std::int64_t length : {5, 63, 5, 0, -1, 62}) counter.add(length);
  EXPECT_EQ(counter.counts(), (std::vector<LengthCount>{{5, 2}, {62, 1}, {63, 1}}));
}

// Six leading bits: 128 to 131 are one class, 132 begins the next; its mean stands for it.
TEST(Lengths, JoinsLongOnesThatDifferLittle) {
  LengthCounter counter;
  for (const std::int64_t length : {128, 131, 131, 132}) counter.add(length);
  EXPECT_EQ(counter.counts(), (std::vector<LengthCount>{{130, 3}, {132, 1}}));
}

TEST(Lengths, ComeBackFromText) {
  const DocumentLengths lengths{"hash", {{{3, 7}, {90, 1}}, {}, {{1, 2}}}};
  EXPECT_EQ(to_text(lengths),
            "{\"index\":\"hash\",\"sources\":[[[3,7],[90,1]],[],[[1,2]]],\"version\":1}\n");
  EXPECT_EQ(lengths_from_text(to_text(lengths)), lengths);
}

TEST(Lengths, HostileTextsAreRefused) {
  const auto text = [](const std::string& sources) {
    return "{\"version\":1,\"index\":\"h\",\"sources\":" + sources + "}";
  };
  EXPECT_TRUE(lengths_from_text(text("[[[1,1]]]")));
  for (const std::string sources :
       {"1", "{}", "[1]", "[[1]]", "[[[1]]]", "[[[1,1,1]]]", "[[[0,1]]]", "[[[1,0]]]", "[[[-1,1]]]",
        "[[[1,1.5]]]", "[[[1,\"1\"]]]", "[[[2,1],[2,1]]]", "[[[2,1],[1,1]]]",
        "[[[1,1099511627777]]]", "[[[1e300,1]]]", "[[[18446744073709551615,1]]]", "[[[[[[]]]]]]"})
    EXPECT_EQ(lengths_from_text(text(sources)).error().code, ExitCode::kUnusable) << sources;
  for (const std::string whole :
       {"", "[]", "null", "{\"version\":2,\"index\":\"h\",\"sources\":[]}",
        "{\"version\":1,\"sources\":[]}", "{\"version\":1,\"index\":7,\"sources\":[]}"})
    EXPECT_FALSE(lengths_from_text(whole)) << whole;
  EXPECT_FALSE(lengths_from_text(std::string(1000000, '[')));
  std::string many = "[";
  for (int i = 1; i < 6000; ++i) many += "[" + std::to_string(i) + ",1],";
  EXPECT_FALSE(lengths_from_text(text("[" + many + "[6000,1]]]")));
}

// Weights change how often documents come, not how long they are.
TEST(Lengths, AreNamedByTheTextsOfARecipe) {
  recipe::Data data;
  data.train = {{"a.txt"}, {"b.txt"}};
  const std::string name = lengths_name(data, "/r");
  recipe::Data heavier = data;
  heavier.train[1].weight = 2;
  EXPECT_EQ(lengths_name(heavier, "/r"), name);
  EXPECT_NE(lengths_name(data, "/s"), name);
  recipe::Data other = data;
  other.validation = {{"b.txt"}};
  other.train.pop_back();
  EXPECT_NE(lengths_name(other, "/r"), name);
  other = data;
  other.validation_fraction = 0.1;
  EXPECT_NE(lengths_name(other, "/r"), name);
  other = data;
  other.train[0].format = recipe::Format::kText;
  EXPECT_NE(lengths_name(other, "/r"), name);
}

TEST(Lengths, LieBesideTheIndex) {
  recipe::Data data;
  EXPECT_EQ(index_folder(data, "/r", "/c/ptrain"), "/c/ptrain/index");
  EXPECT_EQ(index_folder(data, "/r", ""), "");
  data.cache = "here";
  EXPECT_EQ(index_folder(data, "/r", ""), "/r/here");
  data.cache = "/there";
  EXPECT_EQ(index_folder(data, "/r", "/c"), "/there");
}

}  // namespace
}  // namespace ptrain::data
