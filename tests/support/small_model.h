#pragma once

#include <cstdint>
#include <string>

#include "core/recipe/model.h"

namespace ptrain::support {

// Two layers of 16, four heads on two: a step takes a millisecond.
inline recipe::Model small_sizes(std::int64_t vocab_size = 61) {
  recipe::Model model;
  model.hidden_size = 16;
  model.intermediate_size = 44;
  model.num_hidden_layers = 2;
  model.num_attention_heads = 4;
  model.num_key_value_heads = 2;
  model.head_dim = 4;
  model.vocab_size = vocab_size;
  return model;
}

// Matrices of 4096 elements and more, large enough for optimizer states of eight bits; the last run
// of the embedding and the head is short.
inline recipe::Model sizes_for_eight_bits(std::int64_t num_hidden_layers) {
  recipe::Model model;
  model.hidden_size = 64;
  model.intermediate_size = 100;
  model.num_hidden_layers = num_hidden_layers;
  model.num_attention_heads = 4;
  model.num_key_value_heads = 4;
  model.head_dim = 16;
  model.vocab_size = 91;
  return model;
}

// Experts, and what balances them.
inline void add_experts(recipe::Model& model) {
  model.num_experts = 5;
  model.num_experts_per_tok = 2;
  model.router_aux_loss_coef = 0.02;
  model.router_z_loss_coef = 0.01;
  if (model.family != "mixtral") model.moe_intermediate_size = 12;
  if (model.family == "qwen3_moe") model.mlp_only_layers = std::string(1, '0');
  if (!model.family.starts_with("deepseek")) return;
  model.num_experts = 6;
  model.num_experts_per_tok = 3;
  model.n_group = 3;
  model.topk_group = 2;
  model.n_shared_experts = 2;
  model.first_k_dense_replace = 1;
  model.num_key_value_heads = model.head_dim = 0;
  model.kv_lora_rank = 10;
  model.qk_nope_head_dim = 4;
  model.qk_rope_head_dim = 6;
  model.v_head_dim = 5;
  model.rope_scaling = {.rope_type = recipe::RopeType::kYarn,
                        .factor = 4,
                        .original_max_position_embeddings = 16,
                        .mscale = 0.7,
                        .mscale_all_dim = 0.8};
  if (model.family == "deepseek_v2") return;
  model.q_lora_rank = 8;
  model.norm_topk_prob = true;
  model.routed_scaling_factor = 2.5;
  model.router_bias_update_rate = 0.01;
}

inline bool has_experts(const std::string& family) {
  return family == "mixtral" || family == "qwen3_moe" || family.starts_with("deepseek");
}

// A model of a family with everything switched on that the family has: windows shorter than a
// document, biases, softcaps, scaled positions.
inline recipe::Model small_model(const std::string& family) {
  recipe::Model model = small_sizes();
  model.family = family;
  if (family == "gpt2") model.num_key_value_heads = model.head_dim = 0;
  if (family == "gemma3") model.head_dim = 6;
  if (family == "llama") model.mlp_bias = true;
  if (family == "gpt2") model.max_position_embeddings = 40;
  if (family == "llama" || family == "qwen3") model.attention_bias = true;
  if (family != "llama" && family != "gpt2" && !family.starts_with("deepseek"))
    model.sliding_window = 5;
  if (has_experts(family)) add_experts(model);
  if (family == "qwen2" || family == "qwen3") model.max_window_layers = 1;
  if (family.starts_with("gemma")) model.final_logit_softcapping = 3;
  if (family == "gemma2") model.attn_logit_softcapping = 2;
  if (family == "gemma3") model.layer_types = "sliding_attention,full_attention";
  if (family == "qwen2")
    model.rope_scaling = {
        .rope_type = recipe::RopeType::kYarn, .factor = 4, .original_max_position_embeddings = 16};
  return model;
}

}  // namespace ptrain::support
