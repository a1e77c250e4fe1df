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
  recipe::Shape wanted;
  wanted.name = "short";
  wanted.sequence = 32;
  wanted.global_batch_tokens = 64;
  wanted.steps = 10;
  plan.recipe.shapes = {wanted};
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

// Plans that hands have edited.
TEST(Plan, ShapesThatDoNotFitAreRefused) {
  const auto refused = [](const nlohmann::json& json) {
    const auto read = plan_from_json(json);
    return read ? "" : read.error().message;
  };
  auto json = to_json(example());
  json["shapes"] = nlohmann::json::array();
  EXPECT_EQ(refused(json), "plan: shapes: there are 0, but the plan's recipe has 1");
  json = to_json(example());
  json["shapes"].push_back(json["shapes"][0]);
  EXPECT_EQ(refused(json), "plan: shapes: there are 2, but the plan's recipe has 1");
  json = to_json(example());
  json["shapes"][0]["name"] = "long";
  EXPECT_EQ(refused(json), "plan: shapes: 'long' stands where the recipe has 'short'");
  json = to_json(example());
  json["shapes"][0]["layout"]["shard"] = 2;
  EXPECT_EQ(refused(json),
            "plan: shapes: the layout of 'short' has 4 ranks, but the plan places 2");
  for (const char* axis : {"dp", "shard", "cp", "tp", "pp"})
    json["shapes"][0]["layout"][axis] = 1 << 20;
  EXPECT_EQ(refused(json),
            "plan: shape 'short': layout: tp is 1048576, but this build runs dp and "
            "shard only");
}

// Found when the plan is read, before anything is started on it.
TEST(Plan, NumbersOutOfTheirRangeAreRefused) {
  const auto refused = [](const char* field, const nlohmann::json& value) {
    auto json = to_json(example());
    nlohmann::json& shape = json["shapes"][0];
    (shape.contains(field) ? shape : shape["layout"])[field] = value;
    const auto read = plan_from_json(json);
    return read ? "" : read.error().message;
  };
  EXPECT_EQ(refused("threads", 0), "plan: shapes: threads of 'short' is 0; allowed: 1 to 4096");
  EXPECT_EQ(refused("threads", 100000),
            "plan: shapes: threads of 'short' is 100000; allowed: 1 to 4096");
  EXPECT_EQ(refused("prefetch", -1), "plan: shape 'short': layout: prefetch is -1");
  EXPECT_EQ(refused("zero", 4), "plan: shape 'short': layout: zero is 4");
  EXPECT_EQ(refused("micro_batch", 0), "plan: shape 'short': layout: micro_batch is 0");
  EXPECT_EQ(refused("tp", 2),
            "plan: shape 'short': layout: tp is 2, but this build runs dp and shard only");
}

}  // namespace
}  // namespace ptrain::run
