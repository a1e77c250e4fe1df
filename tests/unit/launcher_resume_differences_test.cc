#include <gtest/gtest.h>

#include "launcher/resume/differences.h"

namespace ptrain::resume {
namespace {

recipe::Recipe base() {
  recipe::Recipe recipe;
  recipe.name = "a";
  recipe.model.hidden_size = 64;
  recipe.shapes.resize(1);
  recipe.shapes[0].name = "short";
  recipe.shapes[0].steps = 10;
  recipe.data.train.resize(1);
  recipe.data.train[0].path = "a.txt";
  return recipe;
}

std::vector<Difference> between(const recipe::Recipe& before, const recipe::Recipe& now) {
  return differences(before, now);
}

TEST(Differences, EqualRecipesHaveNone) {
  recipe::Recipe now = base();
  EXPECT_TRUE(between(base(), now).empty());
  now.model.file = "other-name-same-fields.yaml";
  EXPECT_TRUE(between(base(), now).empty());
}

TEST(Differences, PlacesToRunAreFree) {
  recipe::Recipe now = base();
  now.parallel.automatic = false;
  now.parallel.dp = 2;
  now.cluster.ranks_per_node = 3;
  now.log.every_steps = 7;
  now.shapes[0].parallel = now.parallel;
  const auto found = between(base(), now);
  EXPECT_GE(found.size(), 4);
  for (const auto& one : found) EXPECT_EQ(one.change, Change::kFree) << one.field;
  EXPECT_TRUE(permit(found, false));
}

std::vector<std::string> lines_between(const recipe::Recipe& before, const recipe::Recipe& now) {
  std::vector<std::string> lines;
  for (const auto& one : between(before, now)) lines.push_back(to_string(one));
  return lines;
}

// `auto` says of each field of a layout what the field's own `auto` says.
TEST(Differences, LayoutsAreComparedFieldByField) {
  using Lines = std::vector<std::string>;
  recipe::Recipe fields = base();
  fields.parallel.automatic = false;
  EXPECT_EQ(lines_between(base(), fields), Lines{});
  fields.parallel.dp = 2;
  EXPECT_EQ(lines_between(base(), fields), Lines{"parallel.dp: auto -> 2"});
  EXPECT_EQ(lines_between(fields, base()), Lines{"parallel.dp: 2 -> auto"});
  recipe::Recipe own = fields;
  own.shapes[0].parallel = own.parallel;
  EXPECT_EQ(lines_between(fields, own), Lines{}) << "the recipe's is that of each shape";
  own.shapes[0].parallel->dp = 4;
  EXPECT_EQ(lines_between(fields, own), Lines{"shapes.0.parallel.dp: 2 -> 4"});
  own.shapes[0].parallel->automatic = true;
  own.shapes[0].parallel->dp = 0;
  EXPECT_EQ(lines_between(own, fields), Lines{"shapes.0.parallel.dp: auto -> 2"});
}

TEST(Differences, AListWithoutEntriesIsNoValue) {
  recipe::Recipe now = base();
  now.cluster.setup = {"module load mpi"};
  EXPECT_EQ(lines_between(base(), now),
            std::vector<std::string>{"cluster.setup.0: none -> module load mpi"});
}

TEST(Differences, DtypesOfStagesNeedAllowingAsPrecisionDoes) {
  recipe::Recipe now = base();
  now.parallel.automatic = false;
  now.parallel.pp = 2;
  recipe::Recipe mixed = now;
  mixed.parallel.stage_dtype = "fp32,bf16";
  EXPECT_TRUE(permit(between(base(), now), false));
  EXPECT_FALSE(permit(between(now, mixed), false));
  EXPECT_FALSE(permit(between(base(), mixed), false));
  EXPECT_TRUE(permit(between(now, mixed), true));
  now.shapes[0].parallel = now.parallel;
  mixed = now;
  mixed.shapes[0].parallel->stage_dtype = "bf16,bf16";
  EXPECT_FALSE(permit(between(now, mixed), false));
}

TEST(Differences, OthersNeedAllowing) {
  recipe::Recipe now = base();
  now.shapes[0].steps = 20;
  now.optimizer.eps = 1e-6;
  now.data.train[0].path = "b.txt";
  const auto found = between(base(), now);
  ASSERT_EQ(found.size(), 3);
  EXPECT_EQ(to_string(found[0]), "data.train.0.path: a.txt -> b.txt");
  EXPECT_EQ(to_string(found[1]), "optimizer.eps: 1e-08 -> 1e-06");
  EXPECT_EQ(to_string(found[2]), "shapes.0.steps: 10 -> 20");
  const Status refused = permit(found, false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::kUsage);
  for (const auto& one : found)
    EXPECT_NE(refused.error().message.find(to_string(one)), std::string::npos);
  EXPECT_TRUE(permit(found, true));
}

TEST(Differences, ModelTokenizerAndOptimizerKindMayNotChange) {
  recipe::Recipe now = base();
  now.model.hidden_size = 128;
  now.model.rope_theta = 5e5;
  now.data.tokenizer = "words";
  now.optimizer.kind = recipe::OptimizerKind::kLion;
  const Status refused = permit(between(base(), now), true);
  ASSERT_FALSE(refused);
  for (const char* part : {"model.hidden_size: 64 -> 128", "model.rope_theta: auto -> 500000.0",
                           "data.tokenizer: byte -> words", "optimizer.kind: adamw -> lion"})
    EXPECT_NE(refused.error().message.find(part), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace ptrain::resume
