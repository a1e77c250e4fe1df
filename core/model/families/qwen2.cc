#include "core/model/families/common.h"
#include "core/model/families/families.h"

namespace ptrain::model::families {
namespace {

Decoder decoder(const recipe::Model& model) {
  Decoder decoder = rotary_decoder(model);
  decoder.attention_bias = true;
  return decoder;
}

}  // namespace

// Qwen2 and 2.5: llama with biases of queries, keys and values; layers from max_window_layers on
// have the window, where there is one.
Family qwen2() {
  return {.name = "qwen2",
          .fields = {"head_dim", "hidden_act", "rms_norm_eps", "rope_theta", "rope_scaling",
                     "num_key_value_heads", "sliding_window", "max_window_layers", "layer_types"},
          .complete = [](recipe::Model& model) { complete_rotary(model, 1e-6, 1e6); },
          .decoder = decoder,
          .hf = qwen_dialect("qwen2", "Qwen2ForCausalLM")};
}

}  // namespace ptrain::model::families
