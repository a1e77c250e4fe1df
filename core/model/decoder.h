#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/recipe/model.h"

namespace ptrain::model {

// kRmsPlusOne multiplies by 1 + weight. kLayerNorm has a bias.
enum class NormKind { kRms, kRmsPlusOne, kLayerNorm };

// One table of rotary angles.
struct RotarySpec {
  double theta = 0;
  recipe::RopeScaling scaling;
  bool operator==(const RotarySpec&) const = default;
};

struct AttentionSpec {
  std::int64_t window = 0;  // tokens that a query sees, itself among them; 0: all before it
  int rotary = -1;          // index into Decoder::rotaries; -1: none
  bool operator==(const AttentionSpec&) const = default;
};

enum class RouterScore { kSoftmax, kSigmoid };
// What a group of experts is worth: its best score, or the sum of its two best.
enum class GroupScore { kBest, kTwoBest };

// Experts in place of the MLP: y = shared(x) + sum over the chosen e of weight_e * expert_e(x), all
// of them gated. The router works in the wide dtype.
struct MoeSpec {
  std::int64_t num_experts = 0;  // routed; 0: no layer has any
  std::int64_t top_k = 0;
  std::int64_t inner = 0;         // width of one
  std::int64_t shared_inner = 0;  // of the shared ones together; 0: none
  RouterScore score = RouterScore::kSoftmax;
  bool has_bias = false;    // added to scores where experts are chosen, never to weights
  bool normalises = false;  // weights of the chosen add up to 1
  double scale = 1;         // of the weights
  std::int64_t num_groups = 1, top_groups = 1;
  GroupScore group_score = GroupScore::kBest;
  double balance_loss = 0, z_loss = 0;  // coefficients
  double bias_rate = 0;                 // bias += rate * sign(mean load - load), once a step
  double capacity_factor = 0;           // 0: no token is dropped
  bool operator==(const MoeSpec&) const = default;
};

// Heads of keys and values that each of `ranks` holds; where there are fewer than ranks, neighbours
// hold the same one.
constexpr std::int64_t key_heads_of_rank(std::int64_t heads, std::int64_t ranks) {
  return heads < ranks ? 1 : heads / ranks;
}

// Latent attention (DeepSeek-V2): queries and keys of [nope | rope], one rope key for all heads;
// keys and values come from a narrow latent.
struct LatentSpec {
  std::int64_t query_rank = 0;      // 0: queries come from the stream itself
  std::int64_t key_value_rank = 0;  // 0: no latent attention
  std::int64_t nope_dim = 0, rope_dim = 0, value_dim = 0;
  std::int64_t head_dim() const { return nope_dim + rope_dim; }  // of queries and keys
  bool operator==(const LatentSpec&) const = default;
};

// Hugging Face names, without .weight and .bias; those after `block` follow it. Empty: not there.
struct ParameterNames {
  std::string embedding = "model.embed_tokens";
  std::string positions;
  std::string block = "model.layers.{}.";
  std::string norm = "input_layernorm";
  std::string query = "self_attn.q_proj";
  std::string key = "self_attn.k_proj";
  std::string value = "self_attn.v_proj";
  std::string query_key_value;  // one matrix in place of the three
  std::string query_norm = "self_attn.q_norm";
  std::string key_norm = "self_attn.k_norm";
  std::string output = "self_attn.o_proj";
  std::string output_norm;  // after the output, before the residual is added
  std::string mlp_norm = "post_attention_layernorm";
  std::string gate = "mlp.gate_proj";
  std::string up = "mlp.up_proj";
  std::string down = "mlp.down_proj";
  std::string down_norm;
  std::string router = "mlp.gate";
  std::string router_bias = "mlp.gate.e_score_correction_bias";  // whole: it has no .weight
  std::string expert = "mlp.experts.{}.";                        // before the three that follow
  std::string expert_gate = "gate_proj", expert_up = "up_proj", expert_down = "down_proj";
  std::string shared = "mlp.shared_experts.";  // before gate_proj, up_proj and down_proj
  std::string query_down = "self_attn.q_a_proj";
  std::string query_down_norm = "self_attn.q_a_layernorm";
  std::string query_up = "self_attn.q_b_proj";
  std::string key_value_down = "self_attn.kv_a_proj_with_mqa";
  std::string key_value_down_norm = "self_attn.kv_a_layernorm";
  std::string key_value_up = "self_attn.kv_b_proj";
  std::string final_norm = "model.norm";
  std::string head = "lm_head";
  bool operator==(const ParameterNames&) const = default;
};

// The maths of a decoder, apart from its sizes: all that parameters, stash, segments and the
// engine's layers follow from. A block is
//   x2 = x + output_norm(output(attention(query, key, value of norm(x))))
//   y = x2 + down_norm(down(product of mlp_norm(x2)))
// where output_norm and down_norm may be missing, and the product is activation(gate) * up, or
// activation(up).
struct Decoder {
  NormKind norm = NormKind::kRms;
  double norm_eps = 0;
  bool norms_after = false;     // output_norm and down_norm
  bool query_key_norm = false;  // on every head, before the positions; without a bias
  bool attention_bias = false;  // of queries, keys and values
  bool output_bias = false;
  bool mlp_bias = false;
  bool linears_transposed = false;  // a block's matrices are stored [in, out]
  bool gated = true;
  recipe::Activation activation = recipe::Activation::kSilu;
  double embedding_scale = 1;
  double attention_scalar = 0;     // scores are divided by its root
  double attention_softcap = 0;    // c tanh(scores / c); 0: none
  double final_softcap = 0;        // of the logits
  std::int64_t num_positions = 0;  // rows of the table of learned positions; 0: no such table
  std::vector<RotarySpec> rotaries;
  std::vector<AttentionSpec> layers;  // one a block
  MoeSpec moe;
  std::vector<bool> has_experts;  // one a block; empty: none has
  LatentSpec latent;
  ParameterNames names;

  // Whether block `index`, from 0, has experts.
  bool experts_in(std::int64_t index) const {
    return !has_experts.empty() && has_experts[static_cast<std::size_t>(index)];
  }
  bool operator==(const Decoder&) const = default;
};

}  // namespace ptrain::model
