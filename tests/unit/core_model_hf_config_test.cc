#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "core/model/architecture.h"
#include "core/model/family.h"
#include "core/model/hf_config.h"

namespace ptrain::model {
namespace {

using nlohmann::json;

// Published sizes of Llama 3.1 8B, as transformers 4 wrote them.
constexpr const char* kLlama31 = R"({
  "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
  "bos_token_id": 128000, "eos_token_id": [128001, 128008], "hidden_act": "silu",
  "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336,
  "max_position_embeddings": 131072, "mlp_bias": false, "model_type": "llama",
  "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
  "pretraining_tp": 1, "rms_norm_eps": 1e-05,
  "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192, "rope_type": "llama3"},
  "rope_theta": 500000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
  "transformers_version": "4.42.3", "use_cache": true, "vocab_size": 128256})";

// The same for Gemma 3 1B, whose file has neither layer_types nor rope_parameters.
constexpr const char* kGemma3 = R"({
  "architectures": ["Gemma3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
  "attn_logit_softcapping": null, "bos_token_id": 2, "cache_implementation": "hybrid",
  "eos_token_id": [1, 106], "final_logit_softcapping": null, "head_dim": 256,
  "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 1152, "initializer_range": 0.02,
  "intermediate_size": 6912, "max_position_embeddings": 32768, "model_type": "gemma3_text",
  "num_attention_heads": 4, "num_hidden_layers": 26, "num_key_value_heads": 1, "pad_token_id": 0,
  "query_pre_attn_scalar": 256, "rms_norm_eps": 1e-06, "rope_local_base_freq": 10000,
  "rope_scaling": null, "rope_theta": 1000000, "sliding_window": 512, "sliding_window_pattern": 6,
  "torch_dtype": "bfloat16", "transformers_version": "4.50.0.dev0", "use_cache": true,
  "vocab_size": 262144})";

constexpr const char* kGpt2 = R"({
  "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1,
  "bos_token_id": 50256, "embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02,
  "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12,
  "n_layer": 12, "n_positions": 1024, "resid_pdrop": 0.1, "summary_activation": null,
  "summary_first_dropout": 0.1, "summary_proj_to_labels": true, "summary_type": "cls_index",
  "summary_use_proj": true, "task_specific_params": {"text-generation": {"max_length": 50}},
  "vocab_size": 50257})";

constexpr const char* kQwen25 = R"({
  "architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "hidden_act": "silu",
  "hidden_size": 896, "initializer_range": 0.02, "intermediate_size": 4864,
  "max_position_embeddings": 32768, "max_window_layers": 21, "model_type": "qwen2",
  "num_attention_heads": 14, "num_hidden_layers": 24, "num_key_value_heads": 2,
  "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 32768,
  "tie_word_embeddings": true, "torch_dtype": "bfloat16", "use_sliding_window": false,
  "vocab_size": 151936})";

recipe::Model model_of(const std::string& text) {
  const auto config = from_hf_config(text);
  EXPECT_TRUE(config) << config.error().message;
  return config ? config->model : recipe::Model();
}

recipe::Model changed(const char* text, const json& changes) {
  json object = json::parse(text);
  object.update(changes);
  return model_of(object.dump());
}

std::string error_of(const char* text, const json& changes) {
  json object = json::parse(text);
  object.update(changes);
  const auto config = from_hf_config(object.dump());
  EXPECT_FALSE(config);
  return config ? "" : config.error().message;
}

// Published counts: 8,030,261,248; 999,885,952; 124,439,808; 494,032,768.
TEST(HfConfig, PublishedModelsHaveTheirSizes) {
  const auto count = [](const char* text) {
    return make_architecture(model_of(text), DType::kFloat32).value().num_parameters();
  };
  EXPECT_EQ(count(kLlama31), 8030261248);
  EXPECT_EQ(count(kGemma3), 999885952);
  EXPECT_EQ(count(kGpt2), 124439808);
  EXPECT_EQ(count(kQwen25), 494032768);
}

TEST(HfConfig, BothSpellingsOfRotaryPositionsAreOne) {
  json newer = json::parse(kLlama31);
  json parameters = newer["rope_scaling"];
  parameters["rope_theta"] = newer["rope_theta"];
  newer.erase("rope_scaling"), newer.erase("rope_theta");
  newer["rope_parameters"] = parameters;
  EXPECT_EQ(model_of(newer.dump()), model_of(kLlama31));
  json older = json::parse(kLlama31);
  older["rope_scaling"]["type"] = older["rope_scaling"]["rope_type"];
  older["rope_scaling"].erase("rope_type");
  EXPECT_EQ(model_of(older.dump()), model_of(kLlama31));
  EXPECT_EQ(model_of(kLlama31).rope_scaling.factor, 8);

  json gemma = json::parse(kGemma3);
  for (const char* name : {"rope_theta", "rope_scaling", "rope_local_base_freq"}) gemma.erase(name);
  gemma["rope_parameters"] = {
      {"full_attention", {{"rope_theta", 1e6}, {"rope_type", "default"}}},
      {"sliding_attention", {{"rope_theta", 1e4}, {"rope_type", "default"}}}};
  EXPECT_EQ(model_of(gemma.dump()), model_of(kGemma3));
}

TEST(HfConfig, BothSpellingsAtOnceMustAgree) {
  json object = json::parse(kLlama31);
  object["rope_parameters"] = object["rope_scaling"];
  EXPECT_EQ(model_of(object.dump()), model_of(kLlama31));
  object["rope_parameters"]["rope_theta"] = object["rope_theta"];
  object["rope_scaling"]["type"] = object["rope_scaling"]["rope_type"];
  object["rope_scaling"].erase("rope_type");
  EXPECT_EQ(model_of(object.dump()), model_of(kLlama31));
  object["rope_parameters"] = {{"rope_type", "default"}};
  const auto config = from_hf_config(object.dump());
  ASSERT_FALSE(config);
  EXPECT_EQ(
      config.error().message,
      "a model that cannot be trained here: rope_scaling: it differs from rope_parameters, and "
      "versions of transformers read one or the other; keep one of them");
}

// Those of recipes, which are checked behind it.
TEST(HfConfig, SizesHaveTheLimitsOfRecipes) {
  json object = json::parse(kLlama31);
  object["vocab_size"] = (1 << 24) + 1;
  EXPECT_EQ(from_hf_config(object.dump()).error().hint, "give a whole number from 1 to 16777216");
}

TEST(HfConfig, LayersHaveTheWindowsOfTheFile) {
  const recipe::Model gemma = model_of(kGemma3);
  const Architecture architecture = make_architecture(gemma, DType::kFloat32).value();
  for (std::size_t i = 0; i < 26; ++i) {
    EXPECT_EQ(architecture.decoder.layers[i].window, i % 6 == 5 ? 0 : 512) << i;
    EXPECT_EQ(architecture.decoder.layers[i].rotary, i % 6 == 5 ? 0 : 1) << i;
  }
  EXPECT_EQ(model_of(kQwen25).sliding_window, 0);
  const recipe::Model sliding = changed(kQwen25, {{"use_sliding_window", true}});
  const Architecture qwen = make_architecture(sliding, DType::kFloat32).value();
  for (std::size_t i = 0; i < 24; ++i)
    EXPECT_EQ(qwen.decoder.layers[i].window, i < 21 ? 0 : 32768) << i;
  json words = json::array();
  for (int i = 0; i < 24; ++i) words.push_back(i % 2 ? "full_attention" : "sliding_attention");
  EXPECT_EQ(changed(kQwen25, {{"use_sliding_window", true}, {"layer_types", words}}).layer_types,
            "sliding_attention,full_attention");
}

TEST(HfConfig, WhatIsWrittenIsReadBack) {
  const json yarn = {{"rope_type", "yarn"},
                     {"factor", 4.0},
                     {"truncate", false},
                     {"original_max_position_embeddings", 8192}};
  for (const recipe::Model& model :
       {model_of(kLlama31), model_of(kGemma3), model_of(kGpt2), model_of(kQwen25),
        changed(kQwen25, {{"use_sliding_window", true}, {"rope_scaling", yarn}}),
        changed(kGemma3, {{"final_logit_softcapping", 30.0}, {"query_pre_attn_scalar", 168}}),
        changed(kGpt2, {{"activation_function", "gelu"}, {"n_inner", 100}})}) {
    const auto text = to_hf_config(model, DType::kFloat32);
    ASSERT_TRUE(text);
    EXPECT_EQ(model_of(*text), model) << *text;
  }
}

// Fields of gpt-oss beside some that families here share, and one that only gemma3 reads.
TEST(HfConfig, FieldsOfAnUnknownFamilyAreNamed) {
  const auto hint_of = [](const json& changes) {
    json object = json::parse(kLlama31);
    object.update(changes);
    return from_hf_config(object.dump()).error().hint;
  };
  const std::string none = hint_of({{"model_type", "gpt_oss"}});
  EXPECT_TRUE(none.starts_with("allowed: ")) << none;
  EXPECT_EQ(none.find("no family"), none.npos) << none;
  EXPECT_EQ(hint_of({{"model_type", "gpt_oss"},
                     {"swiglu_limit", 7.0},
                     {"initial_context_length", 4096},
                     {"num_local_experts", 32},
                     {"rope_local_base_freq", 1e4},
                     {"sliding_window", 128}}),
            none +
                "; it also has fields that no family here reads: initial_context_length, "
                "swiglu_limit");
  json many{{"model_type", "other"}};
  for (int i = 10; i < 23; ++i) many["a" + std::to_string(i) + std::string(100, 'x')] = i;
  const std::string hint = hint_of(many);
  EXPECT_TRUE(hint.ends_with(", a21" + std::string(57, 'x') + ", ...")) << hint;
}

TEST(HfConfig, WhatCannotBeTrainedIsNamedAllAtOnce) {
  EXPECT_EQ(error_of(kLlama31, {{"hidden_act", "relu"},
                                {"hidden_size", "big"},
                                {"rope_scaling", {{"rope_type", "dynamic"}, {"factor", 2.0}}},
                                {"quantization_config", {{"bits", 4}}}}),
            "a model that cannot be trained here: hidden_size: \"big\" is not a whole number that "
            "is not negative; hidden_size: missing or 0; hidden_act: 'relu' is not known; allowed: "
            "silu, gelu, gelu_new, gelu_pytorch_tanh; rope_scaling.rope_type: 'dynamic' is not "
            "known; allowed: default, linear, llama3, yarn; quantization_config: quantised weights "
            "cannot be trained here");
  EXPECT_EQ(error_of(kLlama31, {{"model_type", "gpt_oss"}}), "model_type 'gpt_oss' is not known");
  EXPECT_EQ(error_of(kGpt2, {{"scale_attn_by_inverse_layer_idx", true}}),
            "a model that cannot be trained here: scale_attn_by_inverse_layer_idx: only false is "
            "available");
  EXPECT_EQ(error_of(kGemma3, {{"attn_logit_softcapping", 50.0}}),
            "a model that cannot be trained here: attn_logit_softcapping: this family has none");
  EXPECT_EQ(error_of(kLlama31, {{"num_key_value_heads", 5}}),
            "model.num_attention_heads 32 is not a multiple of model.num_key_value_heads 5");
  EXPECT_EQ(error_of(kLlama31, {{"rms_norm_eps", 0}, {"rope_theta", 0.0}}),
            "a model that cannot be trained here: rms_norm_eps: 0 is not above zero; rope_theta: 0 "
            "is not above zero");
  json words = std::vector<std::string>(24, "full_attention");
  words[7] = "linear_attention";
  EXPECT_EQ(error_of(kQwen25, {{"layer_types", words}}),
            "a model that cannot be trained here: layer_types: 'linear_attention' is not known; "
            "allowed: full_attention, sliding_attention");
  for (const char* text : {"", "[]", "{", "{\"model_type\": 3}"})
    EXPECT_FALSE(from_hf_config(text));
}

TEST(HfConfig, SaysWhereJsonEnds) {
  for (const auto& [text, where] :
       {std::pair{"", "line 1, column 1"}, std::pair{"{\"a\": NaN}", "line 1, column 7"},
        std::pair{"{\n  \"a\": 1,\n}\n", "line 3, column 1"}}) {
    const auto config = from_hf_config(text);
    ASSERT_FALSE(config);
    EXPECT_EQ(config.error().message, fmt::format("config.json is not JSON from {} on", where));
    EXPECT_NE(config.error().hint, "");
  }
  EXPECT_EQ(from_hf_config("{\"a\": 1e999}").error().message,
            "config.json holds a number that is too large");
}

TEST(HfConfig, WhatIsNotUsedIsTold) {
  EXPECT_TRUE(from_hf_config(kLlama31)->warnings.empty());
  EXPECT_EQ(from_hf_config(kGpt2)->warnings,
            (std::vector<std::string>{"attn_pdrop is 0.1, but training here has no dropout",
                                      "embd_pdrop is 0.1, but training here has no dropout",
                                      "resid_pdrop is 0.1, but training here has no dropout"}));
  json object = json::parse(kLlama31);
  object["router_aux_loss_coef"] = 0.1;
  object["rope_scaling"]["long_factor"] = {1, 2};
  object.erase("tie_word_embeddings");
  object["tie_word_embedings"] = true;  // as transformers does: told, and passed over
  EXPECT_EQ(from_hf_config(object.dump())->warnings,
            (std::vector<std::string>{"rope_scaling.long_factor is not used",
                                      "router_aux_loss_coef is not used",
                                      "tie_word_embedings is not used; did you mean "
                                      "'tie_word_embeddings'?"}));
}

TEST(Families, AFieldWithoutEffectIsRefused) {
  recipe::Model model = model_of(kGpt2);
  model.rope_theta = 1e4;
  model.sliding_window = 8;
  const auto complete_model = complete(model);
  ASSERT_FALSE(complete_model);
  EXPECT_EQ(complete_model.error().message,
            "model.rope_theta, model.sliding_window has no effect in family gpt2");
}

TEST(Families, ACompleteModelStaysAsItIs) {
  for (const char* text : {kLlama31, kGemma3, kGpt2, kQwen25}) {
    const recipe::Model model = model_of(text);
    EXPECT_EQ(complete(model).value(), model);
  }
}

}  // namespace
}  // namespace ptrain::model
