#include "core/model/families/common.h"
#include "core/model/families/experts.h"
#include "core/model/rotary.h"

namespace ptrain::model::families {

void complete_deepseek(recipe::Model& model) {
  complete_rotary(model, 1e-6, 1e4);
  model.head_dim = model.qk_nope_head_dim + model.qk_rope_head_dim;
  set_default(model.routed_scaling_factor, 1.0);
  set_default<std::int64_t>(model.n_group, 1);
  set_default<std::int64_t>(model.topk_group, 1);
}

Decoder deepseek_decoder(const recipe::Model& model) {
  Decoder decoder = rotary_decoder(model);
  decoder.latent = {model.q_lora_rank, model.kv_lora_rank, model.qk_nope_head_dim,
                    model.qk_rope_head_dim, model.v_head_dim};
  const double factor = rotary_score_factor(decoder.rotaries.front());
  decoder.attention_scalar = static_cast<double>(model.head_dim) / (factor * factor);
  decoder.moe = moe_of(model, model.moe_intermediate_size);
  decoder.has_experts = layers_with_experts(model);
  return decoder;
}

std::vector<std::string_view> deepseek_fields() {
  return {"hidden_act",
          "rms_norm_eps",
          "rope_theta",
          "rope_scaling",
          "num_key_value_heads",
          "q_lora_rank",
          "kv_lora_rank",
          "qk_nope_head_dim",
          "qk_rope_head_dim",
          "v_head_dim",
          "num_experts",
          "num_experts_per_tok",
          "moe_intermediate_size",
          "n_shared_experts",
          "first_k_dense_replace",
          "routed_scaling_factor",
          "n_group",
          "topk_group",
          "router_aux_loss_coef",
          "router_z_loss_coef",
          "expert_capacity_factor"};
}

HfDialect deepseek_dialect(std::string model_type, std::string architecture) {
  HfDialect hf{.model_type = std::move(model_type), .architecture = std::move(architecture)};
  hf.names = {{"num_experts", "n_routed_experts"}, {"router_aux_loss_coef", "aux_loss_alpha"}};
  hf.defaults.rms_norm_eps = 1e-6;
  hf.defaults.kv_lora_rank = 512;
  hf.defaults.q_lora_rank = 1536;
  hf.defaults.qk_nope_head_dim = 128;
  hf.defaults.qk_rope_head_dim = 64;
  hf.defaults.v_head_dim = 128;
  hf.fixed = {{"attention_bias", false}};
  return hf;
}

}  // namespace ptrain::model::families
