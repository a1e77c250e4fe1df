#pragma once

#include <vector>

#include "core/base/result.h"
#include "core/recipe/breach.h"
#include "core/recipe/model.h"

namespace ptrain::model {

// All rules on layer_types, max_window_layers, softcaps, eps, query_pre_attn_scalar, rope_scaling,
// experts and latent attention, whatever the family. Paths are the recipe's:
// "model.rope_scaling.factor".
std::vector<recipe::Breach> breaches_of(const recipe::Model& model);

// Those on experts and on latent attention.
std::vector<recipe::Breach> expert_breaches(const recipe::Model& model);
std::vector<recipe::Breach> latent_breaches(const recipe::Model& model);

// One error (kUsage) of all breaches; none: no error.
Status status_of(const std::vector<recipe::Breach>& breaches);

}  // namespace ptrain::model
