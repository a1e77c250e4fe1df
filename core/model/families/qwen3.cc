#include "core/model/families/common.h"
#include "core/model/families/families.h"

namespace ptrain::model::families {
namespace {

void complete(recipe::Model& model) {
  complete_rotary(model, 1e-6, 1e6);
  set_default<std::int64_t>(model.head_dim, 128);
}

Decoder decoder(const recipe::Model& model) {
  Decoder decoder = rotary_decoder(model);
  decoder.query_key_norm = true;
  decoder.attention_bias = decoder.output_bias = model.attention_bias;
  return decoder;
}

}  // namespace

// Qwen3: a norm on every head of queries and keys; windows as in Qwen2.
Family qwen3() {
  HfDialect hf = qwen_dialect("qwen3", "Qwen3ForCausalLM");
  hf.defaults.head_dim = 128;
  return {.name = "qwen3",
          .fields = {"head_dim", "hidden_act", "attention_bias", "rms_norm_eps", "rope_theta",
                     "rope_scaling", "num_key_value_heads", "sliding_window", "max_window_layers",
                     "layer_types"},
          .complete = complete,
          .decoder = decoder,
          .hf = std::move(hf)};
}

}  // namespace ptrain::model::families
