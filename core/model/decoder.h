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
  double attention_scalar = 0;  // scores are divided by its root
  double attention_softcap = 0;    // c tanh(scores / c); 0: none
  double final_softcap = 0;        // of the logits
  std::int64_t num_positions = 0;  // rows of the table of learned positions; 0: no such table
  std::vector<RotarySpec> rotaries;
  std::vector<AttentionSpec> layers;  // one a block
  ParameterNames names;
  bool operator==(const Decoder&) const = default;
};

}  // namespace ptrain::model
