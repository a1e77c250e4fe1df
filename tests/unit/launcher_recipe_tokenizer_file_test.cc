// Models of tests/fixtures/data; expected.json there says what Python's package finds in them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "core/base/hash.h"
#include "launcher/recipe/reader.h"

namespace ptrain::recipe {
namespace {

constexpr const char* kRecipe = R"(version: 1
name: pieces
model: {hidden_size: 8, intermediate_size: 8, num_hidden_layers: 1, num_attention_heads: 2}
data:
  tokenizer: sentencepiece
  tokenizer_file: unigram
  train:
    - path: a.txt
shapes:
  - {name: only, sequence: 8, global_batch_tokens: 8, steps: 1}
)";

std::string model_bytes(const std::string& name) {
  std::ostringstream text;
  text << std::ifstream(std::string(std::getenv("PTRAIN_SOURCE_DIR")) + "/tests/fixtures/data/" +
                            name + ".model",
                        std::ios::binary)
              .rdbuf();
  return text.str();
}

Result<std::string> find_tokenizer(const std::string& file) {
  if (file == "missing") return fail(ExitCode::kUsage, "there is no such file as missing");
  return file == "damaged" ? "no model" : model_bytes(file);
}

Result<Recipe> read(const std::vector<std::string>& overrides) {
  const FindModel no_model = [](const std::string&) -> Result<NamedText> {
    return fail(ExitCode::kUsage, "no file");
  };
  return read_recipe_text({"recipe.yaml", kRecipe}, overrides, no_model, nullptr, find_tokenizer);
}

std::string refusal(const std::vector<std::string>& overrides) {
  const auto recipe = read(overrides);
  EXPECT_FALSE(recipe);
  return recipe ? "" : recipe.error().message;
}

// 359 pieces: 384 is the next multiple of 64.
TEST(TokenizerFile, FillsInVocabularyAndHash) {
  const auto recipe = read({});
  ASSERT_TRUE(recipe) << recipe.error().message;
  EXPECT_EQ(recipe->model.vocab_size, 384);
  EXPECT_EQ(recipe->data.tokenizer_hash, hash128_hex(model_bytes("unigram")));
  const auto given = read({"model.vocab_size=359"});
  ASSERT_TRUE(given);
  EXPECT_EQ(given->model.vocab_size, 359);
  EXPECT_TRUE(read({"data.tokenizer_hash=" + recipe->data.tokenizer_hash}));
}

TEST(TokenizerFile, RefusalsNamePlaceAndReason) {
  const auto expect = [](const std::vector<std::string>& overrides, const char* place,
                         const char* reason) {
    const std::string message = refusal(overrides);
    EXPECT_NE(message.find(place), std::string::npos) << message;
    EXPECT_NE(message.find(reason), std::string::npos) << message;
  };
  expect({"model.vocab_size=358"}, "model.vocab_size", "has 359 pieces");
  expect({"data.tokenizer_file=missing"}, "data.tokenizer_file", "no such file");
  expect({"data.tokenizer_file=damaged"}, "data.tokenizer_file", "no SentencePiece model");
  expect({"data.tokenizer_file=no_end"}, "data.tokenizer_file", "--eos_id");
  expect({"data.tokenizer_file=''"}, "data.tokenizer_file", "is needed");
  expect({"data.tokenizer_hash=0"}, "data.tokenizer_hash", "the tokenizer's file has");
  expect({"data.tokenizer=byte"}, "recipe.yaml:6", "tokenizer: byte has no file");
}

// A run's own recipe is settled: its file may have moved, and is looked at by the engine alone.
TEST(TokenizerFile, IsNotReadAgainForOverrides) {
  const auto recipe = read({});
  ASSERT_TRUE(recipe);
  const auto moved = override_recipe(*recipe, {"data.tokenizer_file=elsewhere"});
  ASSERT_TRUE(moved) << moved.error().message;
  EXPECT_EQ(moved->model.vocab_size, 384);
  EXPECT_EQ(moved->data.tokenizer_hash, recipe->data.tokenizer_hash);
}

}  // namespace
}  // namespace ptrain::recipe
