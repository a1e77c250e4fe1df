#pragma once

#include "core/model/family.h"

namespace ptrain::model::families {

// value, or `otherwise` where it is 0 or kFamily: what a family fills in.
template <class T>
void set_default(T& value, T otherwise) {
  if (value == T{}) value = otherwise;
}

// RMSNorm, gated MLP and one rotary table for every layer, as llama made them usual. Windows are
// those of the model's layer_types, or of all layers where it names none.
Decoder rotary_decoder(const recipe::Model& model);

// Whether a layer has the window, by layer_types and max_window_layers.
bool has_window(const recipe::Model& model, std::int64_t layer);

// Values for what such a model leaves open.
void complete_rotary(recipe::Model& model, double rms_norm_eps, double rope_theta);

// The config.json of qwen2 and qwen3, whose window can be switched off.
HfDialect qwen_dialect(std::string model_type, std::string architecture);

}  // namespace ptrain::model::families
