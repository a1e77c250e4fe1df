#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/recipe/field.h"
#include "core/recipe/json.h"

namespace ptrain::recipe {
namespace {

// Any value that the table allows for the field.
Value any_value(const Field& field) {
  const auto clamp = [&](double value) {
    return std::min(std::max(value, field.range.least), field.range.most);
  };
  switch (field.type) {
    case FieldType::kBoolean:
      return *rc::gen::arbitrary<bool>();
    case FieldType::kInteger: {
      const auto least = static_cast<std::int64_t>(field.range.least);
      const auto most = field.range.most > 1e18 ? std::numeric_limits<std::int64_t>::max() - 1
                                                : static_cast<std::int64_t>(field.range.most);
      return *rc::gen::inRange<std::int64_t>(least, most + 1);
    }
    case FieldType::kNumber: {
      const double share = *rc::gen::inRange<int>(1, 1 << 30) / static_cast<double>(1 << 30);
      return clamp(field.range.least + share * (field.range.most - field.range.least));
    }
    case FieldType::kChoice:
      return *rc::gen::elementOf(field.choices);
    case FieldType::kText:
      return *rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::inRange(' ', '\x7F')));
  }
  return false;
}

Recipe any_recipe() {
  Recipe recipe;
  for (const List& list : lists()) list.resize(recipe, *rc::gen::inRange<std::size_t>(0, 4));
  recipe.parallel.automatic = *rc::gen::arbitrary<bool>();
  for (Shape& shape : recipe.shapes) {
    if (*rc::gen::arbitrary<bool>()) shape.parallel.emplace();
    if (shape.parallel) shape.parallel->automatic = *rc::gen::arbitrary<bool>();
  }
  for (const Field& field : fields()) {
    const AutoSection* section = auto_section_around(field.path);
    const std::size_t bracket = field.path.find("[]");
    const std::size_t size =
        bracket == std::string::npos ? 1 : find_list(field.path.substr(0, bracket))->size(recipe);
    for (std::size_t i = 0; i < size; ++i) {
      const bool is_open = section == nullptr || section->get(recipe, i) == SectionState::kFields;
      const bool changes = field.required || *rc::gen::arbitrary<bool>();
      if (is_open && changes) field.set(recipe, i, any_value(field));
    }
  }
  return recipe;
}

Recipe small_recipe() {
  Recipe recipe;
  recipe.name = "small";
  recipe.seed = 7;
  recipe.model.hidden_size = 64;
  recipe.model.intermediate_size = 96;
  recipe.model.num_hidden_layers = 2;
  recipe.model.num_attention_heads = 4;
  recipe.data.train = {{"a.txt"}};
  recipe.shapes.resize(1);
  recipe.shapes[0].name = "only";
  recipe.shapes[0].sequence = 16;
  recipe.shapes[0].global_batch_tokens = 64;
  return recipe;
}

RC_GTEST_PROP(Json, RoundTrip, ()) {
  const Recipe recipe = any_recipe();
  const nlohmann::json json = nlohmann::json::parse(to_json(recipe).dump());
  const auto read = from_json(json);
  if (!read) RC_FAIL(read.error().message);
  RC_ASSERT(*read == recipe);
}

TEST(Json, HasTheNamesOfTheRecipe) {
  Recipe recipe = small_recipe();
  recipe.shapes[0].parallel.emplace().automatic = false;
  recipe.shapes[0].parallel->zero = 3;
  recipe.optimizer.beta2 = 0.5;
  recipe.learning_rate.final_fraction = 0.25;
  const nlohmann::json json = to_json(recipe);
  EXPECT_EQ(json["name"], "small");
  EXPECT_EQ(json["seed"], 7);
  EXPECT_EQ(json["data"]["train"][0]["path"], "a.txt");
  EXPECT_EQ(json["data"]["validation"], nlohmann::json::array());
  EXPECT_EQ(json["optimizer"]["betas"], (nlohmann::json{0.9, 0.5}));
  EXPECT_EQ(json["learning_rate"]["final"], 0.25);
  EXPECT_EQ(json["parallel"], "auto");
  EXPECT_EQ(json["shapes"][0]["parallel"]["zero"], 3);
  EXPECT_EQ(json["shapes"][0]["parallel"]["dp"], "auto");
  EXPECT_EQ(json["cluster"]["ranks_per_node"], "auto");
}

TEST(Json, RefusesWhatTheTableDoesNotHave) {
  nlohmann::json json = to_json(small_recipe());
  json["model"]["hiden_size"] = 3;
  json["seed"] = "7";
  json["log"]["every_steps"] = 1.5;
  const auto read = from_json(json);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message.substr(0, 34), "the recipe in JSON has 3 errors\n  ");
  EXPECT_NE(read.error().message.find("JSON: model: unknown key 'hiden_size'"), std::string::npos);
  EXPECT_NE(read.error().message.find("did you mean 'hidden_size'?"), std::string::npos);
  EXPECT_NE(read.error().message.find("JSON: seed: the number is quoted"), std::string::npos);
  EXPECT_NE(read.error().message.find("JSON: log.every_steps: '1.5' is a float"),
            std::string::npos);
}

TEST(Json, RefusesWhatIsNoRecipe) {
  EXPECT_FALSE(from_json(nlohmann::json()));
  EXPECT_FALSE(from_json(nlohmann::json::array({1})));
  EXPECT_FALSE(from_json(nlohmann::json::object()));
  nlohmann::json deep = 1;
  for (int i = 0; i < 100; ++i) deep = nlohmann::json::array({deep});
  EXPECT_EQ(from_json(deep).error().message, "the recipe in JSON is nested too deeply");
}

}  // namespace
}  // namespace ptrain::recipe
