#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "core/run/plan.h"

namespace ptrain::run {
namespace {

Plan example() {
  Plan plan;
  plan.build = "0.1-ab";
  plan.recipe_hash = "h";
  plan.recipe.name = "tiny";
  plan.recipe.model.hidden_size = 64;
  plan.recipe.model.intermediate_size = 128;
  plan.recipe.model.num_hidden_layers = 2;
  plan.recipe.model.num_attention_heads = 4;
  plan.recipe_folder = "/recipes";
  plan.cluster = "here";
  plan.peak_flops_per_rank = 1e11;
  plan.ranks = {{0, "a", 0, -1}, {1, "a", 1, -1}};
  ShapePlan shape;
  shape.name = "short";
  shape.layout.dp = 2;
  shape.layout.recompute = recipe::Recompute::kFull;
  shape.threads = 3;
  shape.predicted.step_s = 0.25;
  shape.predicted.high_s = std::numeric_limits<double>::infinity();
  program::BytesByClass bytes{};
  bytes[2].value = 12345678901;
  shape.predicted.classes = {{2, "abc", bytes}};
  shape.rejected = {{"rows do not divide", 3, "dp4"}};
  plan.shapes = {shape};
  return plan;
}

TEST(Plan, ComesBackFromJson) {
  const auto read = plan_from_json(to_json(example()));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, example());
}

TEST(Plan, KeepsWhereItGoesOnFrom) {
  Plan plan = example();
  plan.origin = {"/a/step-7", 7, 1000, true, false};
  EXPECT_EQ(plan_from_text(to_text(plan)), plan);
  auto json = to_json(plan);
  json["origin"]["step"] = -1;
  EXPECT_FALSE(plan_from_json(json));
  EXPECT_FALSE(to_json(example()).contains("origin"));
}

TEST(Plan, ComesBackFromText) {
  EXPECT_EQ(plan_from_text(to_text(example())), example());
  EXPECT_FALSE(plan_from_text("{"));
}

TEST(Plan, DamageIsRefused) {
  auto json = to_json(example());
  json["version"] = 2;
  EXPECT_FALSE(plan_from_json(json));
  const auto whole = to_json(example());
  for (const auto& [key, value] : whole.items()) {
    json = whole;
    json.erase(key);
    EXPECT_FALSE(plan_from_json(json)) << key;
  }
  json = to_json(example());
  json["shapes"][0]["layout"]["dp"] = 0;
  EXPECT_FALSE(plan_from_json(json));
  json = to_json(example());
  json["shapes"][0]["layout"]["recompute"] = "some";
  EXPECT_FALSE(plan_from_json(json));
}

}  // namespace
}  // namespace ptrain::run
