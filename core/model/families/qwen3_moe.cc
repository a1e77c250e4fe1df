#include "core/model/families/common.h"
#include "core/model/families/experts.h"
#include "core/model/families/families.h"

namespace ptrain::model::families {
namespace {

void complete(recipe::Model& model) {
  complete_rotary(model, 1e-6, 1e6);
  set_default<std::int64_t>(model.decoder_sparse_step, 1);
}

Decoder decoder(const recipe::Model& model) {
  Decoder decoder = rotary_decoder(model);
  decoder.query_key_norm = true;
  decoder.attention_bias = decoder.output_bias = model.attention_bias;
  decoder.moe = moe_of(model, model.moe_intermediate_size);
  decoder.has_experts = layers_with_experts(model);
  return decoder;
}

}  // namespace

// Qwen3 with experts in most layers or all; every layer has the window, where there is one.
Family qwen3_moe() {
  HfDialect hf = qwen_dialect("qwen3_moe", "Qwen3MoeForCausalLM");
  hf.defaults.num_key_value_heads = 4;
  hf.defaults.max_window_layers = 0;
  hf.defaults.decoder_sparse_step = 1;
  hf.defaults.num_experts = 128;
  hf.defaults.num_experts_per_tok = 8;
  hf.defaults.moe_intermediate_size = 768;
  hf.defaults.router_aux_loss_coef = 1e-3;
  return {.name = "qwen3_moe",
          .fields = {"head_dim", "hidden_act", "attention_bias", "rms_norm_eps", "rope_theta",
                     "rope_scaling", "num_key_value_heads", "sliding_window", "num_experts",
                     "num_experts_per_tok", "moe_intermediate_size", "decoder_sparse_step",
                     "mlp_only_layers", "norm_topk_prob", "router_aux_loss_coef",
                     "router_z_loss_coef", "expert_capacity_factor"},
          .complete = complete,
          .decoder = decoder,
          .hf = std::move(hf)};
}

}  // namespace ptrain::model::families
