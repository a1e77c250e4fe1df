#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "launcher/recipe/hf_folder.h"

namespace ptrain::recipe {
namespace {

std::string fixture(const std::string& name) {
  return std::string(std::getenv("PTRAIN_SOURCE_DIR")) + "/tests/fixtures/safetensors/" + name;
}

const std::string kRecipe = R"(version: 1
name: tuned
model: {hf: small}
data: {train: [{path: a.bin, format: bin}], tokenizer: none}
shapes:
  - {name: only, sequence: 16, global_batch_tokens: 64, steps: 10}
)";

// Finds the config.json of tests/fixtures/safetensors/llama_tied in any folder but `missing`.
Result<NamedText> find(const std::string& file) {
  if (file.starts_with("missing")) return fail(ExitCode::kUsage, "there is no such file");
  std::ostringstream text;
  text << std::ifstream(fixture("llama_tied/config.json")).rdbuf();
  return NamedText{"/models/" + file, text.str()};
}

Result<Recipe> read(const std::vector<std::string>& overrides = {}) {
  return read_recipe_text({"recipe.yaml", kRecipe}, overrides, find);
}

std::string why(const std::vector<std::string>& overrides) {
  const auto recipe = read(overrides);
  return recipe ? "accepted" : recipe.error().message;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(HfFolder, GivesTheModel) {
  const auto recipe = read();
  ASSERT_TRUE(recipe) << recipe.error().message;
  EXPECT_EQ(recipe->model.hf, "/models/small");
  EXPECT_EQ(recipe->model.hidden_size, 8);
  EXPECT_EQ(recipe->model.num_key_value_heads, 1);
  EXPECT_EQ(recipe->model.head_dim, 4);
  EXPECT_EQ(recipe->model.rms_norm_eps, 1e-6);
  EXPECT_TRUE(recipe->model.tie_word_embeddings);
}

TEST(HfFolder, RefusesFieldsBesideIt) {
  const std::string text = why({"model.hidden_size=8", "model.file=m.yaml"});
  EXPECT_TRUE(has(text, "model.hidden_size: model.hf says it")) << text;
  EXPECT_TRUE(has(text, "model.file: model.hf says it")) << text;
}

TEST(HfFolder, SaysWhatIsMissing) {
  const std::string text = why({"model.hf=missing"});
  EXPECT_TRUE(has(text, "model.hf: there is no such file; nothing is fetched: name a folder"))
      << text;
  EXPECT_FALSE(has(text, "hidden_size")) << text;
  EXPECT_FALSE(has(text, "vocab_size")) << text;
}

TEST(HfFolder, RefusesWhatARecipeMayNotSay) {
  const FindModel find_odd = [](const std::string& file) -> Result<NamedText> {
    PTRAIN_TRY(NamedText found, find(file));
    auto config = nlohmann::json::parse(found.text);
    config.update({{"initializer_range", 0.0}, {"rms_norm_eps", 2.0}});
    return NamedText{found.path, config.dump()};
  };
  const auto recipe = read_recipe_text({"recipe.yaml", kRecipe}, {}, find_odd);
  ASSERT_FALSE(recipe);
  const std::string& text = recipe.error().message;
  EXPECT_TRUE(has(text,
                  "recipe.yaml:3:13: model.hf: /models/small/config.json: "
                  "model.initializer_range: 0.0 is out of range; allowed: above 0"))
      << text;
  EXPECT_TRUE(has(text, "model.rms_norm_eps: 2.0 is out of range")) << text;
}

TEST(HfFolder, RefusesATokenizerBeyondItsVocabulary) {
  EXPECT_TRUE(has(why({"data.tokenizer=byte"}),
                  "the model has a vocabulary of 16, but the byte tokenizer has 258 tokens"))
      << why({"data.tokenizer=byte"});
}

TEST(HfFolder, StaysWhenARunIsResumedWithOverrides) {
  const Recipe recipe = read().value();
  const auto changed = override_recipe(recipe, {"log.every_steps=5"});
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_EQ(changed->log.every_steps, 5);
  EXPECT_EQ(changed->model, recipe.model);
}

TEST(HfFolder, ChecksItsWeights) {
  Recipe recipe = read().value();
  recipe.model.hf = fixture("llama_tied");
  const auto notes = check_weights(recipe);
  ASSERT_TRUE(notes) << notes.error().message;
  EXPECT_TRUE(notes->empty());
  recipe.model.intermediate_size = 13;
  const auto wrong = check_weights(recipe);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ExitCode::kUnusable);
  EXPECT_TRUE(has(wrong.error().message,
                  "layers.1.mlp.up_proj.weight' has the shape [12, 8] "
                  "instead of [13, 8]"))
      << wrong.error().message;
  recipe.model.hf = fixture("nowhere");
  EXPECT_TRUE(has(check_weights(recipe).error().message, "holds neither model.safetensors nor"));
  recipe.model.hf.clear();
  EXPECT_TRUE(check_weights(recipe).has_value());
}

}  // namespace
}  // namespace ptrain::recipe
