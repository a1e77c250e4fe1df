#pragma once

#include <cstdint>

#include "core/model/family.h"

namespace ptrain::model::families {

// What a model with experts says about them; inner: the width of one.
MoeSpec moe_of(const recipe::Model& model, std::int64_t inner);

// Whether block `layer` has experts: behind first_k_dense_replace, every decoder_sparse_step-th,
// and not among mlp_only_layers.
bool has_experts(const recipe::Model& model, std::int64_t layer);
std::vector<bool> layers_with_experts(const recipe::Model& model);

// Values for what DeepSeek-V2 and V3 leave open, and their decoder but for the router: latent
// attention, experts beside shared ones.
void complete_deepseek(recipe::Model& model);
Decoder deepseek_decoder(const recipe::Model& model);
// Their fields that recipes may set.
std::vector<std::string_view> deepseek_fields();
HfDialect deepseek_dialect(std::string model_type, std::string architecture);

}  // namespace ptrain::model::families
