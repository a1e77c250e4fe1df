#include "core/model/families/common.h"

#include <utility>

#include "core/model/layer_types.h"

namespace ptrain::model::families {

bool has_window(const recipe::Model& model, std::int64_t layer) {
  if (model.sliding_window == 0) return false;
  if (model.layer_types.empty()) return layer >= model.max_window_layers;
  return layer_type(model.layer_types, layer) == LayerType::kSliding;
}

Decoder rotary_decoder(const recipe::Model& model) {
  Decoder decoder;
  decoder.norm_eps = model.rms_norm_eps;
  decoder.activation = model.hidden_act;
  decoder.attention_scalar = static_cast<double>(model.head_dim);
  decoder.rotaries = {{model.rope_theta, model.rope_scaling}};
  for (std::int64_t layer = 0; layer < model.num_hidden_layers; ++layer)
    decoder.layers.push_back({has_window(model, layer) ? model.sliding_window : 0, 0});
  return decoder;
}

void complete_rotary(recipe::Model& model, double rms_norm_eps, double rope_theta) {
  set_default(model.hidden_act, recipe::Activation::kSilu);
  set_default(model.rms_norm_eps, rms_norm_eps);
  set_default(model.rope_theta, rope_theta);
}

HfDialect qwen_dialect(std::string model_type, std::string architecture) {
  HfDialect hf{.model_type = std::move(model_type), .architecture = std::move(architecture)};
  hf.defaults.rms_norm_eps = 1e-6;
  hf.defaults.num_key_value_heads = 32;
  hf.defaults.sliding_window = 4096;
  hf.defaults.max_window_layers = 28;
  hf.has_window_switch = true;
  return hf;
}

}  // namespace ptrain::model::families
