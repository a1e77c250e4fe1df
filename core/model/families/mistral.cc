#include "core/model/families/common.h"
#include "core/model/families/families.h"

namespace ptrain::model::families {

// Llama without biases; every layer has the window, where there is one (4096 in v0.1, none later).
Family mistral() {
  HfDialect hf{.model_type = "mistral", .architecture = "MistralForCausalLM"};
  hf.defaults.rms_norm_eps = 1e-6;
  hf.defaults.num_key_value_heads = 8;
  hf.defaults.sliding_window = 4096;
  return {.name = "mistral",
          .fields = {"head_dim", "hidden_act", "rms_norm_eps", "rope_theta", "rope_scaling",
                     "num_key_value_heads", "sliding_window"},
          .complete = [](recipe::Model& model) { complete_rotary(model, 1e-5, 1e4); },
          .decoder = rotary_decoder,
          .hf = std::move(hf)};
}

}  // namespace ptrain::model::families
