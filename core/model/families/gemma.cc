#include <cmath>

#include "core/model/families/common.h"
#include "core/model/families/families.h"

namespace ptrain::model::families {
namespace {

void complete_both(recipe::Model& model) {
  set_default(model.hidden_act, recipe::Activation::kGeluTanh);
  set_default(model.rms_norm_eps, 1e-6);
  set_default<std::int64_t>(model.head_dim, 256);
  set_default<std::int64_t>(model.sliding_window, 4096);
  set_default(model.query_pre_attn_scalar, static_cast<double>(model.head_dim));
}

void complete_gemma2(recipe::Model& model) {
  complete_both(model);
  set_default(model.rope_theta, 1e4);
  if (model.layer_types.empty()) model.layer_types = "sliding_attention,full_attention";
}

void complete_gemma3(recipe::Model& model) {
  complete_both(model);
  set_default(model.rope_theta, 1e6);
  set_default(model.rope_local_base_freq, 1e4);
  if (!model.layer_types.empty()) return;
  for (int i = 0; i < 5; ++i) model.layer_types += "sliding_attention,";
  model.layer_types += "full_attention";
}

// Four norms a block, by 1 + weight.
Decoder decoder_of_both(const recipe::Model& model) {
  Decoder decoder = rotary_decoder(model);
  decoder.norm = NormKind::kRmsPlusOne;
  decoder.norms_after = true;
  decoder.names.output_norm = "post_attention_layernorm";
  decoder.names.mlp_norm = "pre_feedforward_layernorm";
  decoder.names.down_norm = "post_feedforward_layernorm";
  decoder.embedding_scale = std::sqrt(static_cast<double>(model.hidden_size));
  decoder.attention_scalar = model.query_pre_attn_scalar;
  decoder.attention_bias = decoder.output_bias = model.attention_bias;
  decoder.final_softcap = model.final_logit_softcapping;
  return decoder;
}

Decoder gemma2_decoder(const recipe::Model& model) {
  Decoder decoder = decoder_of_both(model);
  decoder.attention_softcap = model.attn_logit_softcapping;
  return decoder;
}

// Layers with a window have a table of their own, which is never scaled.
Decoder gemma3_decoder(const recipe::Model& model) {
  Decoder decoder = decoder_of_both(model);
  decoder.query_key_norm = true;
  decoder.rotaries.push_back({model.rope_local_base_freq, {}});
  for (AttentionSpec& layer : decoder.layers) layer.rotary = layer.window > 0 ? 1 : 0;
  return decoder;
}

HfDialect dialect_of_both(std::string model_type, std::string architecture) {
  HfDialect hf{.model_type = std::move(model_type), .architecture = std::move(architecture)};
  hf.names = {{"hidden_act", "hidden_activation"}};
  hf.defaults.rms_norm_eps = 1e-6;
  hf.defaults.num_key_value_heads = 4;
  hf.defaults.head_dim = 256;
  hf.defaults.query_pre_attn_scalar = 256;
  hf.defaults.sliding_window = 4096;
  hf.defaults.tie_word_embeddings = true;
  hf.fixed = {{"use_bidirectional_attention", false}};
  return hf;
}

}  // namespace

// Gemma 2: windows on every second layer, softcaps on scores and logits.
Family gemma2() {
  HfDialect hf = dialect_of_both("gemma2", "Gemma2ForCausalLM");
  hf.defaults.attn_logit_softcapping = 50;
  hf.defaults.final_logit_softcapping = 30;
  return {.name = "gemma2",
          .fields = {"head_dim", "hidden_act", "attention_bias", "rms_norm_eps", "rope_theta",
                     "rope_scaling", "num_key_value_heads", "sliding_window", "layer_types",
                     "query_pre_attn_scalar", "attn_logit_softcapping", "final_logit_softcapping"},
          .complete = complete_gemma2,
          .decoder = gemma2_decoder,
          .hf = std::move(hf)};
}

// Gemma 3, its text part: windows on five of six layers, a norm on every head of queries and keys.
// transformers applies no softcap to its scores.
Family gemma3() {
  HfDialect hf = dialect_of_both("gemma3_text", "Gemma3ForCausalLM");
  hf.defaults.rope_theta = 1e6;
  return {
      .name = "gemma3",
      .fields = {"head_dim", "hidden_act", "attention_bias", "rms_norm_eps", "rope_theta",
                 "rope_scaling", "rope_local_base_freq", "num_key_value_heads", "sliding_window",
                 "layer_types", "query_pre_attn_scalar", "final_logit_softcapping"},
      .complete = complete_gemma3,
      .decoder = gemma3_decoder,
      .hf = std::move(hf)};
}

}  // namespace ptrain::model::families
