#include "core/model/families/common.h"
#include "core/model/families/families.h"

namespace ptrain::model::families {
namespace {

Decoder decoder(const recipe::Model& model) {
  Decoder decoder = rotary_decoder(model);
  decoder.attention_bias = decoder.output_bias = model.attention_bias;
  decoder.mlp_bias = model.mlp_bias;
  return decoder;
}

}  // namespace

// Llama 2 and 3 and what follows them: RMSNorm, rotary positions (llama3 scaling since 3.1),
// MHA/GQA, SwiGLU.
Family llama() {
  HfDialect hf{.model_type = "llama", .architecture = "LlamaForCausalLM"};
  hf.defaults.rms_norm_eps = 1e-6;
  return {.name = "llama",
          .fields = {"head_dim", "hidden_act", "attention_bias", "mlp_bias", "rms_norm_eps",
                     "rope_theta", "rope_scaling", "num_key_value_heads"},
          .complete = [](recipe::Model& model) { complete_rotary(model, 1e-5, 1e4); },
          .decoder = decoder,
          .hf = std::move(hf)};
}

}  // namespace ptrain::model::families
