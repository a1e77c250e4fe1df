#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "launcher/recipe/reader.h"

namespace ptrain::recipe {
namespace {

const std::string kGood = R"(version: 1
name: small
model: {hidden_size: 64, intermediate_size: 96, num_hidden_layers: 2, num_attention_heads: 4}
data: {train: [{path: a.txt}]}
shapes:
  - {name: only, sequence: 16, global_batch_tokens: 64, steps: 10}
)";

Result<NamedText> no_model(const std::string&) { return fail(ExitCode::kUsage, "no files here"); }

Result<Recipe> read(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return read_recipe_text({"recipe.yaml", text}, overrides, no_model);
}

std::string message_of(const Result<Recipe>& result) {
  return result ? "accepted" : result.error().message;
}

std::string quickstart_path() {
  const char* source = std::getenv("PTRAIN_SOURCE_DIR");
  return std::string(source == nullptr ? "." : source) + "/recipes/quickstart.yaml";
}

TEST(Reader, FillsInWhatIsLeftOut) {
  const auto recipe = read(kGood);
  ASSERT_TRUE(recipe) << recipe.error().message;
  EXPECT_EQ(recipe->model.num_key_value_heads, 4);
  EXPECT_EQ(recipe->model.head_dim, 16);
  EXPECT_EQ(recipe->model.vocab_size, 320);  // 256 bytes, two more tokens, a multiple of 64
  EXPECT_EQ(recipe->shapes[0].tokens, 640);
  EXPECT_TRUE(recipe->parallel.automatic);
  EXPECT_FALSE(recipe->shapes[0].parallel.has_value());
  EXPECT_EQ(recipe->optimizer, Optimizer{});
}

TEST(Reader, TokensGiveWholeSteps) {
  const auto recipe = read(kGood, {"shapes.0.steps=0", "shapes.0.tokens=65"});
  ASSERT_TRUE(recipe) << recipe.error().message;
  EXPECT_EQ(recipe->shapes[0].steps, 2);
  EXPECT_EQ(recipe->shapes[0].tokens, 128);
}

TEST(Reader, ReadsEveryKindOfValue) {
  const auto recipe = read(
      kGood, {"seed=9223372036854775807", "learning_rate.peak=1e-3", "learning_rate.decay=constant",
              "precision=fp64", "model.tie_word_embeddings=true", "data.cache=a=b",
              "optimizer.betas=[0.5, .75]", "optimizer.betas.1=0.25", "failure.hang_timeout=12.5",
              "optimizer.clip_norm=+2", "parallel={dp: 2, zero: 3, recompute: full, shard: auto}"});
  ASSERT_TRUE(recipe) << recipe.error().message;
  EXPECT_EQ(recipe->seed, 9223372036854775807ULL);
  EXPECT_EQ(recipe->learning_rate.peak, 1e-3);
  EXPECT_EQ(recipe->learning_rate.decay, Decay::kConstant);
  EXPECT_EQ(recipe->precision, Precision::kFloat64);
  EXPECT_TRUE(recipe->model.tie_word_embeddings);
  EXPECT_EQ(recipe->data.cache, "a=b");
  EXPECT_EQ(recipe->optimizer.beta1, 0.5);
  EXPECT_EQ(recipe->optimizer.beta2, 0.25);
  EXPECT_EQ(recipe->optimizer.clip_norm, 2.0);
  EXPECT_EQ(recipe->failure.hang_timeout_s, 12.5);
  EXPECT_FALSE(recipe->parallel.automatic);
  EXPECT_EQ(recipe->parallel.dp, 2);
  EXPECT_EQ(recipe->parallel.shard, 0);
  EXPECT_EQ(recipe->parallel.zero, 3);
  EXPECT_EQ(recipe->parallel.recompute, Recompute::kFull);
}

// Nothing gathered ahead is a choice; leaving the choice open is another.
TEST(Reader, PrefetchMayBeZeroOrOpen) {
  const auto prefetch = [](const std::string& value) {
    return read(kGood, {"parallel={shard: 2, zero: 3, prefetch: " + value + "}"});
  };
  EXPECT_EQ(prefetch("0")->parallel.prefetch, 0);
  EXPECT_EQ(prefetch("2")->parallel.prefetch, 2);
  EXPECT_EQ(prefetch("auto")->parallel.prefetch, std::nullopt);
  EXPECT_FALSE(prefetch("-1"));
  EXPECT_NE(message_of(prefetch("none")).find("auto, 0 to 1024"), std::string::npos)
      << message_of(prefetch("none"));
}

TEST(Reader, TextsStayAsWritten) {
  for (const std::string name : {"no", "012", "1e3", "true"}) {
    const auto recipe = read(kGood, {fmt::format("name={}", name)});
    ASSERT_TRUE(recipe) << recipe.error().message;
    EXPECT_EQ(recipe->name, name);
  }
}

TEST(Reader, OverridesReplaceAndAdd) {
  const auto recipe = read(kGood, {"parallel.dp=2", "shapes.0.parallel.shard=3",
                                   "shapes.0.parallel.recompute=none", "seed=3", "seed=4"});
  ASSERT_TRUE(recipe) << recipe.error().message;
  EXPECT_EQ(recipe->parallel.dp, 2);
  ASSERT_TRUE(recipe->shapes[0].parallel.has_value());
  EXPECT_EQ(recipe->shapes[0].parallel->shard, 3);
  EXPECT_EQ(recipe->shapes[0].parallel->recompute, Recompute::kNone);
  EXPECT_EQ(recipe->seed, 4U);
}

TEST(Reader, OverridesOfOneValueKeepTheOthersOfItsList) {
  const auto recipe = read(kGood, {"optimizer.betas.0=0.8"});
  ASSERT_TRUE(recipe) << recipe.error().message;
  EXPECT_EQ(recipe->optimizer.beta1, 0.8);
  EXPECT_EQ(recipe->optimizer.beta2, Optimizer{}.beta2);
  const auto second = read(kGood, {"optimizer.betas.1=0.5", "optimizer.betas.0=0.25"});
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->optimizer.beta1, 0.25);
  EXPECT_EQ(second->optimizer.beta2, 0.5);
  EXPECT_FALSE(read(kGood, {"optimizer.betas.2=0.5"}));
  EXPECT_FALSE(read(kGood, {"optimizer.betas.first=0.5"}));
}

TEST(Reader, AcceptsReservedKeysThatSayWhatHappensAnyway) {
  EXPECT_TRUE(
      read(kGood, {"cluster.nodes=1", "checkpoint.async=false", "data.train.0.format=text"}));
}

TEST(Reader, AModelFileFillsWhatTheRecipeLeavesOut) {
  const FindModel find_model = [](const std::string& file) -> Result<NamedText> {
    return NamedText{file, "hidden_size: 32\nrope_theta: 5e5\n"};
  };
  const auto recipe = read_recipe_text({"r.yaml", kGood}, {"model.file=m.yaml"}, find_model);
  ASSERT_TRUE(recipe) << recipe.error().message;
  EXPECT_EQ(recipe->model.hidden_size, 64);
  EXPECT_EQ(recipe->model.rope_theta, 5e5);
}

TEST(Reader, RefusesHostileTexts) {
  const auto refused = [](const std::string& text, const std::string& part) {
    const std::string message = message_of(read(text));
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  refused("", "there is nothing in it");
  refused("# a comment\n", "there is nothing in it");
  refused(std::string((1 << 20) + 1, '#'), "larger than 1048576 bytes");
  refused("\xEF\xBB\xBF" + kGood, "recipe.yaml:1:1: begins with a byte order mark");
  refused("\xFF\xFE" + kGood, "recipe.yaml:1:1: begins with a byte order mark");
  refused(kGood + "log: \xC3(", "recipe.yaml:7:6: not UTF-8");
  refused(kGood + "log: \xC0\x80", "recipe.yaml:7:6: not UTF-8");      // overlong
  refused(kGood + "log: \xED\xA0\x80", "recipe.yaml:7:6: not UTF-8");  // a surrogate
  refused(kGood + std::string("\0", 1), "the control character \\x00 is not allowed");
  refused(std::string(5000, '['), "nested more than 32 deep");
  refused(std::string(5000, '{'), "nested more than 32 deep");
  refused("a: " + std::string(33, '[') + std::string(33, ']'), "nested more than 32 deep");
  std::string keys;
  for (int i = 0; i < 2000; ++i) keys += fmt::format("k{}: 1\n", i);
  refused(keys, "more than 1000 keys in one mapping");
}

TEST(Reader, OnlyFiftyFaultsAreShown) {
  std::string text = kGood;
  for (int i = 0; i < 60; ++i) text += fmt::format("k{}: 1\n", i);
  const std::string message = message_of(read(text));
  EXPECT_TRUE(message.starts_with("the recipe has 60 errors\n")) << message;
  EXPECT_TRUE(message.ends_with("\n  and 10 more")) << message;
}

TEST(ReadRecipe, ReadsTheQuickstart) {
  const auto loaded = read_recipe(quickstart_path(), {});
  ASSERT_TRUE(loaded) << loaded.error().message;
  const Recipe& recipe = loaded->recipe;
  EXPECT_EQ(recipe.model.hidden_size, 128);
  EXPECT_EQ(recipe.model.vocab_size, 320);
  ASSERT_EQ(recipe.shapes.size(), 2U);
  EXPECT_EQ(recipe.shapes[0].global_batch_tokens, 12 * 128);
  EXPECT_EQ(recipe.data.train.at(0).path, "/usr/include/**/*.h");
  EXPECT_TRUE(loaded->folder.starts_with("/"));
  EXPECT_TRUE(loaded->folder.ends_with("/recipes"));
}

TEST(ReadRecipe, TheHashIsOfTheValuesHoweverGiven) {
  const auto hash = [](const std::vector<std::string>& overrides) {
    const auto loaded = read_recipe(quickstart_path(), overrides);
    return loaded ? loaded->hash : loaded.error().message;
  };
  const std::string one = hash({"seed=12", "optimizer.eps=1e-6"});
  EXPECT_EQ(one.size(), 32u) << one;
  EXPECT_NE(one, hash({}));
  EXPECT_NE(one, hash({"seed=12"}));
  EXPECT_EQ(one, hash({"optimizer.eps=0.000001", "seed=12"}));
  EXPECT_EQ(one, hash({"seed=1", "optimizer.eps=1e-06", "seed=12"})) << "the last word counts";
  EXPECT_EQ(one, hash({"seed=12", "optimizer.eps=1e-6", "cluster.slurm.nodes=2"}))
      << "where a job runs";
  Recipe recipe;
  recipe.model.file = "a.yaml";
  Recipe same = recipe;
  same.model.file = "b.yaml";
  EXPECT_EQ(identity_of(recipe), identity_of(same)) << "its fields are there";
}

TEST(ReadRecipe, LooksForTheModelBesideTheRecipeFirst) {
  const std::string folder = testing::TempDir() + "ptrain-model-" + std::to_string(::getpid());
  const auto shipped = read_recipe(quickstart_path(), {}, folder);
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/llama-tiny.yaml")
      << "hidden_size: 64\nintermediate_size: 96\nnum_hidden_layers: 2\nnum_attention_heads: 4\n";
  const auto own = read_recipe(quickstart_path(), {}, folder);
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(shipped) << shipped.error().message;
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_EQ(shipped->recipe.model.hidden_size, 128);
  EXPECT_EQ(own->recipe.model.hidden_size, 64);
  EXPECT_EQ(own->folder, folder);
  EXPECT_NE(own->hash, shipped->hash);
}

TEST(ReadRecipe, ReportsAllOfAModelFileThatIsNowhere) {
  const auto missing = read_recipe(quickstart_path(), {"model.file=no.yaml"});
  ASSERT_FALSE(missing);
  EXPECT_TRUE(missing.error().message.starts_with(
      "the recipe has 1 error\n  override 'model.file=no.yaml': model.file: there is no such file"))
      << missing.error().message;
}

TEST(Reader, AnOverrideWithNothingSaysHowToWriteAnEmptyText) {
  for (const char* text : {"data.cache=", "data.cache=  "})
    EXPECT_NE(message_of(read(kGood, {text})).find("an empty text is name='\"\"'"),
              std::string::npos);
  EXPECT_TRUE(read(kGood, {"data.cache=\"\""}));
}

// What follows an open quote is not taken for its value, whatever the file leaves out.
TEST(Reader, AnOpenQuoteIsNamed) {
  const std::string open = "version: 1\nname: small\nprecision: ";
  for (const std::string rest : {"\"fp32", "\"fp32\nseed: 1\n", "'fp32\n", "'fp32\nseed: 1"})
    EXPECT_NE(
        message_of(read(open + rest)).find("recipe.yaml:3:1: not YAML: a quote that is opened"),
        std::string::npos)
        << message_of(read(open + rest));
  EXPECT_NE(message_of(read(kGood, {"name=\"small"})).find("a quote that is opened"),
            std::string::npos);
}

// A glob is the first text that people begin so.
TEST(Reader, TextsThatNeedQuotesAreNamed) {
  const auto named = [](const std::string& path) {
    return message_of(read(kGood, {"data.train=[{path: " + path + "}]"}));
  };
  for (const char* path : {"*.txt", "**/*.h", "*", "@a", "%a", "`a`"})
    EXPECT_NE(named(path).find("quote a text that begins with"), std::string::npos) << named(path);
  EXPECT_EQ(named("'*.txt'"), "accepted");
  const auto colon = message_of(read("version: 1\nname: a: b\n"));
  EXPECT_NE(colon.find("recipe.yaml:2:8: not YAML: a colon"), std::string::npos) << colon;
}

TEST(OverrideRecipe, ChangesAResolvedRecipe) {
  const auto quickstart = read_recipe(quickstart_path(), {});
  ASSERT_TRUE(quickstart) << quickstart.error().message;
  const Recipe& before = quickstart->recipe;
  const auto same = override_recipe(before, {});
  ASSERT_TRUE(same) << same.error().message;
  EXPECT_EQ(*same, before);
  const auto changed =
      override_recipe(before, {"shapes.1.steps=7", "parallel.dp=2", "parallel.shard=1"});
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_EQ(changed->shapes[1].steps, 7);
  EXPECT_EQ(changed->shapes[1].tokens, 7 * before.shapes[1].global_batch_tokens);
  EXPECT_EQ(changed->parallel.dp, 2);
  EXPECT_FALSE(changed->parallel.automatic);
  EXPECT_NE(message_of(override_recipe(before, {"optimizer.epps=1"})).find("did you mean"),
            std::string::npos);
}

TEST(ReadRecipe, NamesAFileThatIsNotThere) {
  const auto missing = read_recipe("/nowhere/recipe.yaml", {});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "/nowhere/recipe.yaml: No such file or directory");
  const auto folder = read_recipe("/", {});
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().message, "/: Is a directory");
}

}  // namespace
}  // namespace ptrain::recipe
