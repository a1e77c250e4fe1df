#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/model/architecture.h"
#include "core/model/family.h"
#include "core/model/hf_config.h"
#include "core/model/optimizer.h"

namespace ptrain::model {
namespace {

recipe::Model mixtral_8x7b() {
  recipe::Model model;
  model.family = "mixtral";
  model.hidden_size = 4096;
  model.intermediate_size = 14336;
  model.num_hidden_layers = 32;
  model.num_attention_heads = 32;
  model.num_key_value_heads = 8;
  model.vocab_size = 32000;
  return model;
}

recipe::Model qwen3_30b_a3b() {
  recipe::Model model;
  model.family = "qwen3_moe";
  model.hidden_size = 2048;
  model.intermediate_size = 6144;
  model.moe_intermediate_size = 768;
  model.num_hidden_layers = 48;
  model.num_attention_heads = 32;
  model.num_key_value_heads = 4;
  model.head_dim = 128;
  model.num_experts = 128;
  model.num_experts_per_tok = 8;
  model.vocab_size = 151936;
  return model;
}

recipe::Model deepseek(const char* family) {
  recipe::Model model;
  model.family = family;
  model.kv_lora_rank = 512;
  model.qk_nope_head_dim = 128;
  model.qk_rope_head_dim = 64;
  model.v_head_dim = 128;
  model.first_k_dense_replace = 1;
  return model;
}

recipe::Model deepseek_v2_lite() {
  recipe::Model model = deepseek("deepseek_v2");
  model.hidden_size = 2048;
  model.intermediate_size = 10944;
  model.moe_intermediate_size = 1408;
  model.num_hidden_layers = 27;
  model.num_attention_heads = 16;
  model.num_experts = 64;
  model.num_experts_per_tok = 6;
  model.n_shared_experts = 2;
  model.vocab_size = 102400;
  return model;
}

recipe::Model deepseek_v3() {
  recipe::Model model = deepseek("deepseek_v3");
  model.q_lora_rank = 1536;
  model.first_k_dense_replace = 3;
  model.hidden_size = 7168;
  model.intermediate_size = 18432;
  model.moe_intermediate_size = 2048;
  model.num_hidden_layers = 61;
  model.num_attention_heads = 128;
  model.num_experts = 256;
  model.num_experts_per_tok = 8;
  model.n_shared_experts = 1;
  model.n_group = 8;
  model.topk_group = 4;
  model.norm_topk_prob = true;
  model.routed_scaling_factor = 2.5;
  model.vocab_size = 129280;
  return model;
}

std::int64_t num_vectors(const Architecture& architecture) {
  std::int64_t sum = 0;
  for (const ParameterSpec& parameter : architecture.parameters)
    if (parameter.shape.size() == 1) sum += parameter.num_elements();
  return sum;
}

struct Published {
  recipe::Model model;
  std::int64_t all, active;  // with embedding, head and norms
};

// Sums of the published figures; DeepSeek-V3: 671 B, of which 37 B are active.
TEST(Experts, ParameterCountsAreThePublishedOnes) {
  for (const Published& each : {Published{mixtral_8x7b(), 46702792704, 12879925248},
                                Published{qwen3_30b_a3b(), 30532122624, 3353032704},
                                Published{deepseek_v2_lite(), 15706484224, 2661150208},
                                Published{deepseek_v3(), 671026419200, 37552297472}}) {
    const Architecture architecture = make_architecture(each.model, DType::kFloat32).value();
    EXPECT_EQ(architecture.num_parameters(), each.all) << each.model.family;
    const std::int64_t embedding = each.model.vocab_size * each.model.hidden_size;
    EXPECT_EQ(architecture.num_matmul_parameters() + embedding + num_vectors(architecture),
              each.active)
        << each.model.family;
  }
}

TEST(Experts, HaveAGroupOfTheirOwnBehindThoseOfLayers) {
  const Architecture architecture = make_architecture(deepseek_v3(), DType::kFloat32).value();
  ASSERT_EQ(architecture.num_groups(), 63 + 58);
  EXPECT_EQ(architecture.layers[3].groups, (std::vector<int>{3}));
  EXPECT_EQ(architecture.layers[4].groups, (std::vector<int>{4, 63}));
  EXPECT_EQ(architecture.groups[63], (GroupSpec{4, true}));
  EXPECT_EQ(architecture.layers[61].groups, (std::vector<int>{61, 120}));
  for (const ParameterSpec& parameter : architecture.parameters)
    EXPECT_EQ(parameter.name.find(".mlp.experts.") != std::string::npos, parameter.group >= 63);
}

TEST(Experts, NamesAreThoseOfTheHub) {
  const auto architecture = [](const recipe::Model& model) {
    return make_architecture(model, DType::kFloat32).value();
  };
  const Architecture mixtral = architecture(mixtral_8x7b());
  const auto names_of = [](const Architecture& of, int layer, std::size_t begin,
                           std::size_t count) {
    std::vector<std::string> names;
    const auto& parameters = of.layers[static_cast<std::size_t>(layer)].parameters;
    for (std::size_t i = begin; i < begin + count; ++i)
      names.push_back(of.parameters[static_cast<std::size_t>(parameters[i])].name);
    return names;
  };
  EXPECT_EQ(names_of(mixtral, 1, 6, 5),
            (std::vector<std::string>{"model.layers.0.block_sparse_moe.gate.weight",
                                      "model.layers.0.block_sparse_moe.experts.0.w1.weight",
                                      "model.layers.0.block_sparse_moe.experts.0.w3.weight",
                                      "model.layers.0.block_sparse_moe.experts.1.w1.weight",
                                      "model.layers.0.block_sparse_moe.experts.1.w3.weight"}));
  EXPECT_EQ(names_of(mixtral, 1, 23, 1).front(),
            "model.layers.0.block_sparse_moe.experts.0.w2.weight");
  const Architecture v3 = architecture(deepseek_v3());
  EXPECT_EQ(
      names_of(v3, 4, 0, 15),
      (std::vector<std::string>{
          "model.layers.3.input_layernorm.weight", "model.layers.3.self_attn.q_a_proj.weight",
          "model.layers.3.self_attn.q_a_layernorm.weight",
          "model.layers.3.self_attn.q_b_proj.weight",
          "model.layers.3.self_attn.kv_a_proj_with_mqa.weight",
          "model.layers.3.self_attn.kv_a_layernorm.weight",
          "model.layers.3.self_attn.kv_b_proj.weight", "model.layers.3.self_attn.o_proj.weight",
          "model.layers.3.post_attention_layernorm.weight", "model.layers.3.mlp.gate.weight",
          "model.layers.3.mlp.gate.e_score_correction_bias",
          "model.layers.3.mlp.shared_experts.gate_proj.weight",
          "model.layers.3.mlp.shared_experts.up_proj.weight",
          "model.layers.3.mlp.shared_experts.down_proj.weight",
          "model.layers.3.mlp.experts.0.gate_proj.weight"}));
}

TEST(Experts, ABiasOfARouterIsBalancedByAnyOptimizer) {
  Architecture architecture = make_architecture(deepseek_v3(), DType::kFloat32).value();
  recipe::Optimizer optimizer;
  optimizer.kind = recipe::OptimizerKind::kMuon;
  use_optimizer(architecture, optimizer);
  for (const ParameterSpec& parameter : architecture.parameters)
    EXPECT_EQ(parameter.rule == UpdateRule::kBalance, parameter.role == Role::kRouterBias);
}

TEST(Experts, AConfigComesBackAsItWent) {
  recipe::Model windowed = qwen3_30b_a3b();
  windowed.mlp_only_layers = "0,5";
  windowed.decoder_sparse_step = 2;
  windowed.router_aux_loss_coef = 0.01;
  recipe::Model grouped = deepseek_v2_lite();
  grouped.n_group = 8;
  grouped.topk_group = 3;
  for (const recipe::Model& given :
       {mixtral_8x7b(), windowed, deepseek_v2_lite(), grouped, deepseek_v3()}) {
    const recipe::Model whole = complete(given).value();
    const HfConfig again = from_hf_config(to_hf_config(whole, DType::kFloat32).value()).value();
    EXPECT_EQ(again.model, whole) << whole.family;
    EXPECT_EQ(again.warnings, std::vector<std::string>{}) << whole.family;
  }
}

TEST(Experts, AConfigThatSendsTokensToNoneIsRefused) {
  auto config = nlohmann::json::parse(
      to_hf_config(complete(mixtral_8x7b()).value(), DType::kFloat32).value());
  config["num_experts_per_tok"] = 0;
  EXPECT_EQ(from_hf_config(config.dump()).error().message,
            "a model that cannot be trained here: num_experts_per_tok: missing or 0");
}

std::string error_of(const recipe::Model& model) {
  const auto result = complete(model);
  return result ? "" : result.error().message;
}

TEST(Experts, SizesThatContradictEachOtherAreNamed) {
  recipe::Model model = deepseek_v3();
  model.num_experts_per_tok = 0;
  EXPECT_EQ(error_of(model),
            "model.num_experts_per_tok is missing: family deepseek_v3 cannot do without; give it");
  model.num_experts_per_tok = 300;
  EXPECT_NE(error_of(model).find("model.num_experts_per_tok is 300, but there are 256 experts"),
            std::string::npos);
  model = deepseek_v3();
  model.n_group = 7;
  EXPECT_EQ(error_of(model),
            "model.n_group is 7, which does not divide num_experts 256; groups are equal");
  model.n_group = 2;
  EXPECT_EQ(error_of(model), "model.topk_group is 4, but there are 2 groups; give at most as many");
  model.n_group = 64;
  model.topk_group = 1;
  EXPECT_EQ(error_of(model),
            "model.topk_group is 1: so many groups hold 4 experts, fewer than the 8 of a token");
  model = qwen3_30b_a3b();
  model.mlp_only_layers = "3,48";
  EXPECT_EQ(error_of(model),
            "model.mlp_only_layers has '48'; give indices of layers from 0 to 47, separated by "
            "commas");
  model = deepseek_v3();
  model.qk_rope_head_dim = 0;
  EXPECT_EQ(error_of(model),
            "model.qk_rope_head_dim is missing: family deepseek_v3 cannot do without; give it");
  model.qk_rope_head_dim = 64;
  model.num_key_value_heads = 8;
  EXPECT_NE(error_of(model).find("model.num_key_value_heads differs"), std::string::npos);
  model = qwen3_30b_a3b();
  model.num_experts = 65536;
  EXPECT_NE(error_of(model).find("at most 262144 experts in all"), std::string::npos);
}

TEST(Experts, DenseFamiliesHaveNone) {
  recipe::Model model = mixtral_8x7b();
  model.family = "mistral";
  model.num_experts = 8;
  EXPECT_EQ(error_of(model), "model.num_experts has no effect in family mistral");
}

TEST(Experts, PublishedConfigsAreRead) {
  // The fields of DeepSeek-V3's config.json that matter, and those that only confirm the family.
  const HfConfig config = from_hf_config(R"({"model_type": "deepseek_v3", "vocab_size": 129280,
    "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048,
    "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128,
    "n_shared_experts": 1, "n_routed_experts": 256, "ep_size": 1, "routed_scaling_factor": 2.5,
    "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_rope_head_dim": 64, "v_head_dim": 128,
    "qk_nope_head_dim": 128, "topk_method": "noaux_tc", "n_group": 8, "topk_group": 4,
    "num_experts_per_tok": 8, "moe_layer_freq": 1, "first_k_dense_replace": 3,
    "norm_topk_prob": true, "scoring_func": "sigmoid", "aux_loss_alpha": 0.001, "seq_aux": true,
    "num_nextn_predict_layers": 1, "rope_theta": 10000,
    "rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0,
      "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096, "type": "yarn"},
    "max_position_embeddings": 163840, "rms_norm_eps": 1e-6, "tie_word_embeddings": false})")
                              .value();
  EXPECT_EQ(config.model.router_aux_loss_coef, 0.001);
  EXPECT_EQ(config.model.head_dim, 192);
  EXPECT_EQ(make_architecture(config.model, DType::kBFloat16).value().num_parameters(),
            671026419200);
  EXPECT_EQ(config.warnings, (std::vector<std::string>{
                                 "num_nextn_predict_layers is 1, but layers that predict further "
                                 "tokens are left out"}));
  // Scores are multiplied by (0.1 ln 40 + 1)^2 / sqrt(192).
  const Architecture architecture = make_architecture(config.model, DType::kFloat32).value();
  const double m = 0.1 * std::log(40.0) + 1;
  EXPECT_NEAR(1 / std::sqrt(architecture.decoder.attention_scalar), m * m / std::sqrt(192.0),
              1e-12);
  const auto half = from_hf_config(R"({"model_type": "deepseek_v3", "vocab_size": 100,
    "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
    "rope_scaling": {"type": "yarn", "factor": 4, "mscale_all_dim": 1.0,
      "original_max_position_embeddings": 16}})");
  ASSERT_FALSE(half);
  EXPECT_EQ(half.error().message,
            "a model that cannot be trained here: rope_scaling: mscale_all_dim without mscale is "
            "not available here");
  const auto refused = from_hf_config(R"({"model_type": "deepseek_v3", "vocab_size": 100,
    "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1,
    "num_attention_heads": 2, "scoring_func": "softmax", "moe_layer_freq": 2})");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "a model that cannot be trained here: moe_layer_freq: only 1 is available; "
            "scoring_func: only \"sigmoid\" is available");
}

}  // namespace
}  // namespace ptrain::model
