// Models written by hand after sentencepiece_model.proto; real ones: the test of the engine's
// tokenizer and that of the recipe's.
#include <gtest/gtest.h>

#include <string>

#include "core/data/sentencepiece_facts.h"

namespace ptrain::data {
namespace {

Result<SentencePieceFacts> facts(const std::string& bytes) {
  return sentencepiece_facts(std::as_bytes(std::span(bytes)));
}

std::string field(char number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}

// A piece: its text, a score of four bytes, its type.
std::string piece(const std::string& text, char type) {
  return field(1, field(1, text) + std::string("\x15\0\0\0\0", 5) + "\x18" + type);
}

constexpr char kNormal = 1, kControl = 3;

TEST(SentencePieceFacts, CountsPiecesAndFindsTheEnd) {
  const std::string pieces = piece("<unk>", 2) + piece("</s>", kControl) + piece("a", kNormal);
  EXPECT_EQ(facts(pieces), (SentencePieceFacts{3, 1}));
  EXPECT_EQ(facts(piece("a", kNormal) + piece("</s>", kNormal)), (SentencePieceFacts{2, -1}));
  // trainer_spec.eos_piece is field 47: its tag takes two bytes.
  const std::string named = field(2, std::string("\xfa\x02\x01", 3) + "E");
  EXPECT_EQ(facts(pieces + piece("E", kControl) + named), (SentencePieceFacts{4, 3}));
}

TEST(SentencePieceFacts, RefusesWhatIsNoModel) {
  const std::string good = piece("</s>", kControl);
  EXPECT_FALSE(facts(""));
  EXPECT_FALSE(facts(field(3, "")));  // no pieces
  for (std::size_t size = 1; size < good.size(); ++size) EXPECT_FALSE(facts(good.substr(0, size)));
  EXPECT_FALSE(facts(good + "\x0b"));                      // a group, which is no longer written
  EXPECT_FALSE(facts(good + std::string(11, '\xff')));     // a number without end
  EXPECT_FALSE(facts(good + "\x0a\xff\xff\xff\xff\x7f"));  // longer than the file
}

}  // namespace
}  // namespace ptrain::data
