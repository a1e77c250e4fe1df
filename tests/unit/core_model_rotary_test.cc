#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/model/architecture.h"
#include "core/model/hf_config.h"
#include "core/model/rotary.h"
#include "core/model/rules.h"

namespace ptrain::model {
namespace {

// What transformers gave in float64 (tests/fixtures/model/make_rotary.py).
nlohmann::json cases() {
  const std::string root = std::getenv("PTRAIN_SOURCE_DIR");
  return nlohmann::json::parse(std::ifstream(root + "/tests/fixtures/model/rotary.json"));
}

TEST(Rotary, FrequenciesAreThoseOfTransformers) {
  for (const nlohmann::json& each : cases()) {
    const auto config = from_hf_config(each["config"].dump());
    ASSERT_TRUE(config) << each["name"] << config.error().message;
    const Architecture architecture = make_architecture(config->model, DType::kFloat32).value();
    const RotarySpec& rotary = architecture.decoder.rotaries.at(0);
    const auto found = rotary_frequencies(rotary, architecture.config.head_dim);
    const auto wanted = each["frequencies"].get<std::vector<double>>();
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t j = 0; j < wanted.size(); ++j)
      EXPECT_NEAR(found[j] / wanted[j], 1, 1e-13) << each["name"] << " pair " << j;
    EXPECT_NEAR(rotary_factor(rotary), each["factor"].get<double>(), 1e-14) << each["name"];
  }
}

std::string error_of(const recipe::RopeScaling& scaling, double theta = 1e4) {
  const Status status = status_of(rope_breaches(scaling, theta));
  return status ? "" : status.error().message;
}

TEST(Rotary, ParametersMissingOrWithoutEffectAreNamed) {
  recipe::RopeScaling scaling;
  EXPECT_EQ(error_of(scaling), "");
  scaling.factor = 2;
  EXPECT_EQ(
      error_of(scaling),
      "model.rope_scaling.factor has no effect: the rope_type does not read it; leave it out");
  scaling.rope_type = recipe::RopeType::kLinear;
  EXPECT_EQ(error_of(scaling), "");
  scaling.rope_type = recipe::RopeType::kLlama3;
  EXPECT_EQ(
      error_of(scaling),
      "model.rope_scaling.original_max_position_embeddings is missing: the rope_type cannot do "
      "without; give it; model.rope_scaling.low_freq_factor is missing: the rope_type cannot "
      "do without; give it; model.rope_scaling.high_freq_factor is missing: the rope_type "
      "cannot do without; give it");
  scaling.original_max_position_embeddings = 64;
  scaling.low_freq_factor = scaling.high_freq_factor = 4;
  EXPECT_EQ(
      error_of(scaling),
      "model.rope_scaling.high_freq_factor is not above low_freq_factor; in Llama 3 they are 4 and "
      "1");
  scaling.rope_type = recipe::RopeType::kYarn;
  scaling.low_freq_factor = scaling.high_freq_factor = 0;
  EXPECT_EQ(error_of(scaling), "");
  scaling.mscale = 0.7;
  EXPECT_EQ(
      error_of(scaling),
      "model.rope_scaling.mscale_all_dim is missing: the rope_type cannot do without; give it");
}

TEST(Rotary, ContextsAreNotShrunkNorRampsTurnedRound) {
  recipe::RopeScaling scaling{.rope_type = recipe::RopeType::kLinear, .factor = 0.5};
  EXPECT_EQ(error_of(scaling),
            "model.rope_scaling.factor is 0.5; it stretches the context: give 1 or more");
  scaling.factor = 1;
  EXPECT_EQ(error_of(scaling), "");
  scaling.rope_type = recipe::RopeType::kYarn;
  scaling.original_max_position_embeddings = 64;
  scaling.beta_fast = 1;
  EXPECT_EQ(error_of(scaling),
            "model.rope_scaling.beta_fast is not above beta_slow; 32 and 1 are usual");
}

}  // namespace
}  // namespace ptrain::model
