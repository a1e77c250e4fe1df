#include "core/model/families/common.h"

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

}  // namespace ptrain::model::families
