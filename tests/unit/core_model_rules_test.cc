#include <gtest/gtest.h>

#include "core/model/rules.h"

namespace ptrain::model {
namespace {

std::string error_of(const recipe::Model& model) {
  const Status status = status_of(breaches_of(model));
  return status ? "" : status.error().message;
}

TEST(Rules, LayerTypesAreTheWordsOfTransformersWithAWindow) {
  recipe::Model model;
  EXPECT_EQ(error_of(model), "");
  model.layer_types = "sliding_attention,full_attention";
  EXPECT_EQ(error_of(model),
            "model.layer_types has sliding_attention, but there is no window; give "
            "model.sliding_window");
  model.sliding_window = 4;
  EXPECT_EQ(error_of(model), "");
  model.layer_types = "sliding_attention, linear_attention";
  EXPECT_EQ(error_of(model),
            "model.layer_types has 'linear_attention'; allowed: full_attention, sliding_attention, "
            "separated by commas");
  for (const char* gaps :
       {"full_attention,", ",full_attention", "full_attention,,full_attention"}) {
    model.layer_types = gaps;
    EXPECT_EQ(error_of(model),
              "model.layer_types has an empty entry; allowed: full_attention, sliding_attention, "
              "separated by commas");
  }
}

TEST(Rules, AWindowForSomeLayersNeedsAWindowAndNoOtherList) {
  recipe::Model model;
  model.max_window_layers = 1;
  EXPECT_EQ(error_of(model),
            "model.max_window_layers has no effect without a window; give model.sliding_window or "
            "leave it out");
  model.sliding_window = 4;
  EXPECT_EQ(error_of(model), "");
  model.layer_types = "full_attention";
  EXPECT_EQ(error_of(model),
            "model.max_window_layers contradicts model.layer_types; keep one of them");
}

TEST(Rules, NumbersThatLeaveNoScoreAreBroken) {
  recipe::Model model;
  model.attn_logit_softcapping = 1e-300;
  EXPECT_EQ(error_of(model),
            "model.attn_logit_softcapping is 1e-300; give 0 for none, or 0.001 and more");
  model.attn_logit_softcapping = 0;
  model.final_logit_softcapping = 1e-4;
  EXPECT_EQ(error_of(model),
            "model.final_logit_softcapping is 0.0001; give 0 for none, or 0.001 and more");
  model.final_logit_softcapping = 0;
  model.query_pre_attn_scalar = 1e-9;
  EXPECT_EQ(error_of(model),
            "model.query_pre_attn_scalar is 1e-09; scores are divided by its root and would leave "
            "the range of fp32: give 1e-06 or more");
}

// Each with the fields that it is about: whoever reads the recipe leaves out rules on fields that
// are wrong in themselves.
TEST(Rules, AllAreListedWithTheirPaths) {
  recipe::Model model;
  model.layer_types = "sliding_attention";
  model.rms_norm_eps = 1e-50;
  model.rope_scaling.factor = 2;
  const auto breaches = breaches_of(model);
  ASSERT_EQ(breaches.size(), 3U);
  EXPECT_EQ(breaches[0].paths,
            (std::vector<std::string>{"model.layer_types", "model.sliding_window"}));
  EXPECT_EQ(breaches[1].paths, (std::vector<std::string>{"model.rms_norm_eps"}));
  EXPECT_EQ(breaches[2].paths, (std::vector<std::string>{"model.rope_scaling.factor",
                                                         "model.rope_scaling.rope_type"}));
}

}  // namespace
}  // namespace ptrain::model
