// Settings of the training that are no optimizer's own reach every step of a run.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/parity/run_folder.h"

namespace ptrain::parity {
namespace {

using recipe::Recipe;

// A step begins with what the steps before made of the parameters: up to that step losses are the
// same bits.
struct Setting {
  const char* name;
  std::size_t first_step;  // whose update is another
  void (*change)(Recipe&);
};

// Of eight steps two warm up and the last four fall.
Recipe with_schedule(Recipe recipe) {
  recipe.learning_rate.warmup_steps = 2;
  recipe.learning_rate.decay = recipe::Decay::kWsd;
  recipe.learning_rate.decay_steps = 4;
  return recipe;
}

constexpr Setting kSettings[] = {
    {"clip_norm", 1, [](Recipe& r) { r.optimizer.clip_norm = 1e-9; }},
    {"peak", 1, [](Recipe& r) { r.learning_rate.peak = 2e-2; }},
    {"warmup_steps", 1, [](Recipe& r) { r.learning_rate.warmup_steps = 4; }},
    {"decay: constant", 5, [](Recipe& r) { r.learning_rate.decay = recipe::Decay::kConstant; }},
    {"decay: linear", 3, [](Recipe& r) { r.learning_rate.decay = recipe::Decay::kLinear; }},
    {"decay: cosine", 3, [](Recipe& r) { r.learning_rate.decay = recipe::Decay::kCosine; }},
    {"decay_steps", 5, [](Recipe& r) { r.learning_rate.decay_steps = 3; }},
    {"final_fraction", 5, [](Recipe& r) { r.learning_rate.final_fraction = 0.9; }}};

TEST(Settings, OfARunChangeItsLossesFromTheirStepOn) {
  const RunFolders folders;
  mesh::Layout one;
  one.micro_batch = 4;
  one.num_micro_batches = 1;
  auto plan = folders.plan(one, one);
  plan.recipe = with_schedule(plan.recipe);
  const auto before = folders.train("before", plan, "").losses;
  for (const Setting& setting : kSettings) {
    auto changed = plan;
    setting.change(changed.recipe);
    const auto after = folders.train(setting.name, changed, "").losses;
    ASSERT_EQ(after.size(), before.size());
    for (std::size_t i = 0; i < setting.first_step; ++i)
      EXPECT_EQ(after[i], before[i]) << setting.name << ", step " << i + 1;
    double largest = 0;
    for (std::size_t i = 0; i < before.size(); ++i)
      largest = std::max(largest, std::abs(after[i] / before[i] - 1));
    EXPECT_NE(after[setting.first_step], before[setting.first_step]) << setting.name;
    EXPECT_GT(largest, 1e-5) << setting.name;
  }
}

}  // namespace
}  // namespace ptrain::parity
