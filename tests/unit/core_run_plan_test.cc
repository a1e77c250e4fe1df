#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/example_plan.h"

namespace ptrain::run {
namespace {

using support::example_plan;

TEST(Plan, ComesBackFromJson) {
  const auto read = plan_from_json(to_json(example_plan()));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, example_plan());
}

TEST(Plan, KeepsWhereItGoesOnFrom) {
  Plan plan = example_plan();
  plan.origin = {"/a/step-7", 7, 1000, true, false};
  EXPECT_EQ(plan_from_text(to_text(plan)), plan);
  auto json = to_json(plan);
  json["origin"]["step"] = -1;
  EXPECT_FALSE(plan_from_json(json));
  EXPECT_FALSE(to_json(example_plan()).contains("origin"));
}

TEST(Plan, ComesBackFromText) {
  EXPECT_EQ(plan_from_text(to_text(example_plan())), example_plan());
  EXPECT_FALSE(plan_from_text("{"));
}

TEST(Plan, DamageIsRefused) {
  auto json = to_json(example_plan());
  json["version"] = 2;
  EXPECT_FALSE(plan_from_json(json));
  const auto whole = to_json(example_plan());
  for (const auto& [key, value] : whole.items()) {
    json = whole;
    json.erase(key);
    EXPECT_FALSE(plan_from_json(json)) << key;
  }
  json = to_json(example_plan());
  json["shapes"][0]["layout"]["dp"] = 0;
  EXPECT_FALSE(plan_from_json(json));
  json = to_json(example_plan());
  json["shapes"][0]["layout"]["recompute"] = "some";
  EXPECT_FALSE(plan_from_json(json));
  json["shapes"][0]["layout"]["recompute"] = "selective";
  EXPECT_EQ(plan_from_json(json)->shapes[0].layout.recompute, recipe::Recompute::kSelective);
  json = to_json(example_plan());
  json["shapes"][0]["layout"]["offload"] = "all";
  EXPECT_FALSE(plan_from_json(json));
  json["shapes"][0]["layout"].erase("offload");  // as written before there was offloading
  EXPECT_EQ(plan_from_json(json)->shapes[0].layout.offload, recipe::Offload::kNone);
}

TEST(Plan, NamesWhatStagesComputeAgain) {
  Plan plan = example_plan();
  EXPECT_FALSE(to_json(plan)["shapes"][0]["layout"].contains("stage_recompute"));
  plan.shapes[0].layout.stage_recompute = {recipe::Recompute::kFull, recipe::Recompute::kNone};
  auto json = to_json(plan);
  EXPECT_EQ(plan_from_json(json)->shapes[0].layout, plan.shapes[0].layout);
  json["shapes"][0]["layout"]["stage_recompute"][1] = "some";
  EXPECT_EQ(plan_from_json(json).error().message,
            "plan: shape 'short': plan: layout: stage_recompute has other words than none, "
            "selective, full");
}

TEST(Plan, NamesTheDTypesOfLayers) {
  Plan plan = example_plan();
  EXPECT_FALSE(to_json(plan)["shapes"][0]["layout"].contains("layer_dtypes"));
  plan.shapes[0].layout.layer_dtypes = {DType::kBFloat16, DType::kFloat32};
  auto json = to_json(plan);
  EXPECT_EQ(plan_from_json(json)->shapes[0].layout, plan.shapes[0].layout);
  json["shapes"][0]["layout"]["layer_dtypes"][1] = "float64";
  EXPECT_EQ(plan_from_json(json).error().message,
            "plan: shape 'short': plan: layout: layer_dtypes has other words than float32 and "
            "bfloat16");
}

TEST(Plan, NamesWhatAllStagesShare) {
  for (bool mesh::Layout::*spread : {&mesh::Layout::spread_embedding, &mesh::Layout::spread_head}) {
    Plan plan = example_plan();
    const auto plain = to_json(plan);
    plan.shapes[0].layout.*spread = true;
    const auto json = to_json(plan);
    EXPECT_EQ(json["shapes"][0]["layout"].size(), plain["shapes"][0]["layout"].size() + 1);
    EXPECT_EQ(plan_from_json(json)->shapes[0].layout, plan.shapes[0].layout);
  }
}

// Plans that hands have edited.
TEST(Plan, ShapesThatDoNotFitAreRefused) {
  const auto refused = [](const nlohmann::json& json) {
    const auto read = plan_from_json(json);
    return read ? "" : read.error().message;
  };
  auto json = to_json(example_plan());
  json["shapes"] = nlohmann::json::array();
  EXPECT_EQ(refused(json), "plan: shapes: there are 0, but the plan's recipe has 1");
  json = to_json(example_plan());
  json["shapes"].push_back(json["shapes"][0]);
  EXPECT_EQ(refused(json), "plan: shapes: there are 2, but the plan's recipe has 1");
  json = to_json(example_plan());
  json["shapes"][0]["name"] = "long";
  EXPECT_EQ(refused(json), "plan: shapes: 'long' stands where the recipe has 'short'");
  json = to_json(example_plan());
  json["shapes"][0]["layout"]["shard"] = 2;
  EXPECT_EQ(refused(json),
            "plan: shapes: the layout of 'short' has 4 ranks, but the plan places 2");
  json = to_json(example_plan());  // two ranks of one row of 32 tokens
  json["shapes"][0]["layout"]["micro_batch"] = 3;
  EXPECT_EQ(refused(json),
            "plan: shapes: a step of 'short' has 192 tokens, but global_batch_tokens is 64");
  json = to_json(example_plan());
  json["shapes"][0]["layout"]["shard"] = 2;
  for (const char* axis : {"dp", "shard", "cp", "tp", "pp"})
    json["shapes"][0]["layout"][axis] = 1 << 20;
  EXPECT_EQ(refused(json),
            "plan: shape 'short': layout: shard is 1048576");  // times dp: no number of ranks
}

// Found when the plan is read, before anything is started on it.
TEST(Plan, NumbersOutOfTheirRangeAreRefused) {
  const auto refused = [](const char* field, const nlohmann::json& value) {
    auto json = to_json(example_plan());
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
  EXPECT_EQ(refused("tp", 0), "plan: shape 'short': layout: tp is 0");
  EXPECT_EQ(refused("tp", 1 << 20), "plan: shape 'short': layout: tp is 1048576");
  EXPECT_EQ(refused("ep", 3), "plan: shape 'short': layout: ep is 3");
}

TEST(Plan, PlacesAndPredictionsOutOfTheirRangeAreRefused) {
  const auto refused = [](const std::string& pointer, const nlohmann::json& value) {
    auto json = to_json(example_plan());
    json.at(nlohmann::json::json_pointer(pointer)) = value;
    const auto read = plan_from_json(json);
    return read ? "" : read.error().message;
  };
  EXPECT_EQ(refused("/ranks/1/rank", 0), "plan: ranks: rank 0 stands where 1 belongs");
  EXPECT_EQ(refused("/ranks/0/gpu", -2),
            "plan: ranks: rank 0 has slot 0 and gpu -2; allowed: 0 and more, and -1 (none) and "
            "more");
  EXPECT_NE(refused("/ranks/0/slot", -1), "");
  const std::string predicted = "/shapes/0/predicted";
  EXPECT_EQ(refused(predicted + "/classes/0/bytes/checkpoint", -1),
            "plan: bytes: checkpoint is -1, below 0");
  for (const nlohmann::json& value :
       {nlohmann::json(1e300), nlohmann::json(-1), nlohmann::json("nan")})
    EXPECT_NE(refused(predicted + "/step_s", value).find("plan: predicted: step_s is "),
              std::string::npos);
}

}  // namespace
}  // namespace ptrain::run
