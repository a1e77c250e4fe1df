#pragma once

#include <cstdint>
#include <string>

namespace ptrain::recipe {

// kFamily: what the family has.
enum class Activation { kFamily, kSilu, kGelu, kGeluTanh };

enum class RopeType { kDefault, kLinear, kLlama3, kYarn };

// How rotary positions are stretched. 0: not given.
struct RopeScaling {
  RopeType rope_type = RopeType::kDefault;
  double factor = 0;
  std::int64_t original_max_position_embeddings = 0;  // llama3, yarn
  double low_freq_factor = 0;                         // llama3
  double high_freq_factor = 0;
  double attention_factor = 0;  // yarn: of cosines and sines; 0: from factor and mscale
  double beta_fast = 0;         // yarn; 0: 32
  double beta_slow = 0;         // yarn; 0: 1
  double mscale = 0;            // yarn, both or none
  double mscale_all_dim = 0;
  bool truncate = true;  // yarn: whole bounds of the ramp
  bool operator==(const RopeScaling&) const = default;
};

// A decoder by the fields of Hugging Face's config.json. What a family leaves open is 0, empty or
// kFamily until core/model completes it; a field that the family has no use for stays so.
struct Model {
  std::string hf;    // Hugging Face folder: fields of its config.json, and first values
  std::string file;  // YAML under configs/models or beside the recipe; its fields are merged below
  std::string family = "llama";
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t num_hidden_layers = 0;
  std::int64_t num_attention_heads = 0;
  std::int64_t num_key_value_heads = 0;  // 0: as many as attention heads
  std::int64_t head_dim = 0;             // 0: hidden_size / num_attention_heads
  std::int64_t vocab_size = 0;           // 0: what the tokenizer needs, padded to a multiple of 64
  std::int64_t max_position_embeddings = 0;  // 0: not told
  Activation hidden_act = Activation::kFamily;
  bool attention_bias = false;
  bool mlp_bias = false;
  double rms_norm_eps = 0;
  double layer_norm_eps = 0;
  double rope_theta = 0;
  double rope_local_base_freq = 0;  // theta of layers with a window
  RopeScaling rope_scaling;
  std::int64_t sliding_window = 0;     // tokens that a query sees, itself among them; 0: all
  std::int64_t max_window_layers = 0;  // first layers, without a window
  std::string layer_types;            // full_attention, sliding_attention: repeated over the layers
  double query_pre_attn_scalar = 0;   // scores are divided by its root; 0: head_dim
  double attn_logit_softcapping = 0;  // 0: none
  double final_logit_softcapping = 0;  // 0: none
  // Experts; num_experts 0: none. Widths and counts that are 0 follow from others or are absent.
  std::int64_t num_experts = 0;  // routed, of a layer
  std::int64_t num_experts_per_tok = 0;
  std::int64_t moe_intermediate_size = 0;  // of one expert
  std::int64_t n_shared_experts = 0;       // that every token passes, as wide as one expert each
  std::int64_t first_k_dense_replace = 0;  // first layers, without experts
  std::int64_t decoder_sparse_step = 0;    // every how many layers one has experts
  std::string mlp_only_layers;             // indices of layers without experts, by commas
  bool norm_topk_prob = false;             // weights of the chosen experts add up to 1
  double routed_scaling_factor = 0;        // multiplies these weights; 0: 1
  std::int64_t n_group = 0;                // groups of experts, of which topk_group are looked at
  std::int64_t topk_group = 0;
  double router_aux_loss_coef = 0;     // of the balance loss
  double router_z_loss_coef = 0;       // of the mean square of log-sum-exp of the router's logits
  double router_bias_update_rate = 0;  // of the bias that balances sigmoid routers
  double expert_capacity_factor = 0;   // of the mean load, beyond which tokens drop; 0: none drop
  // Latent attention; kv_lora_rank 0: none.
  std::int64_t q_lora_rank = 0;  // 0: queries come from the stream itself
  std::int64_t kv_lora_rank = 0;
  std::int64_t qk_nope_head_dim = 0;
  std::int64_t qk_rope_head_dim = 0;
  std::int64_t v_head_dim = 0;
  double initializer_range = 0.02;
  bool tie_word_embeddings = false;
  bool operator==(const Model&) const = default;
};

}  // namespace ptrain::recipe
