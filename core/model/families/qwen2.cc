#include "core/model/families/common.h"
#include "core/model/families/families.h"

namespace ptrain::model::families {
namespace {

void complete(recipe::Model& model) {
  set_default(model.hidden_act, recipe::Activation::kSilu);
  set_default(model.rms_norm_eps, 1e-6);
  set_default(model.rope_theta, 1e6);
}

Decoder decoder(const recipe::Model& model) {
  Decoder decoder = rotary_decoder(model);
  decoder.attention_bias = true;
  return decoder;
}

}  // namespace

// Qwen2 and 2.5: llama with biases of queries, keys and values; layers from max_window_layers on
// have the window, where there is one.
Family qwen2() {
  HfDialect hf{.model_type = "qwen2", .architecture = "Qwen2ForCausalLM"};
  hf.defaults.rms_norm_eps = 1e-6;
  hf.defaults.num_key_value_heads = 32;
  hf.defaults.sliding_window = 4096;
  hf.defaults.max_window_layers = 28;
  hf.has_window_switch = true;
  return {.name = "qwen2",
          .fields = {"head_dim", "hidden_act", "rms_norm_eps", "rope_theta", "rope_scaling",
                     "num_key_value_heads", "sliding_window", "max_window_layers", "layer_types"},
          .complete = complete,
          .decoder = decoder,
          .hf = std::move(hf)};
}

}  // namespace ptrain::model::families
