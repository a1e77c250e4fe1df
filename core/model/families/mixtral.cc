#include "core/model/families/common.h"
#include "core/model/families/experts.h"
#include "core/model/families/families.h"

namespace ptrain::model::families {
namespace {

void complete(recipe::Model& model) {
  complete_rotary(model, 1e-5, 1e6);
  set_default<std::int64_t>(model.num_experts, 8);
  set_default<std::int64_t>(model.num_experts_per_tok, 2);
}

// Every layer has experts, as wide as a dense MLP; weights of the chosen always add up to 1.
Decoder decoder(const recipe::Model& model) {
  Decoder decoder = rotary_decoder(model);
  decoder.moe = moe_of(model, model.intermediate_size);
  decoder.moe.normalises = true;
  decoder.has_experts = layers_with_experts(model);
  decoder.names.router = "block_sparse_moe.gate";
  decoder.names.expert = "block_sparse_moe.experts.{}.";
  decoder.names.expert_gate = "w1";
  decoder.names.expert_up = "w3";
  decoder.names.expert_down = "w2";
  return decoder;
}

}  // namespace

// Mistral with experts in place of every MLP.
Family mixtral() {
  HfDialect hf{.model_type = "mixtral", .architecture = "MixtralForCausalLM"};
  hf.names = {{"num_experts", "num_local_experts"}};
  hf.defaults.rms_norm_eps = 1e-5;
  hf.defaults.rope_theta = 1e6;
  hf.defaults.num_key_value_heads = 8;
  hf.defaults.num_experts = 8;
  hf.defaults.num_experts_per_tok = 2;
  hf.defaults.router_aux_loss_coef = 1e-3;
  return {.name = "mixtral",
          .fields = {"head_dim", "hidden_act", "rms_norm_eps", "rope_theta", "rope_scaling",
                     "num_key_value_heads", "sliding_window", "num_experts", "num_experts_per_tok",
                     "router_aux_loss_coef", "router_z_loss_coef", "expert_capacity_factor"},
          .complete = complete,
          .decoder = decoder,
          .hf = std::move(hf)};
}

}  // namespace ptrain::model::families
