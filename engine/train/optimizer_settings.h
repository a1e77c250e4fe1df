#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/model/architecture.h"
#include "core/recipe/optimizer.h"

namespace ptrain::train {

// The settings by which a parameter is updated, under the names that torch.optim gives them in
// param_groups, so that it can load them all; of Lion and AdamW in 8 bits, those of its papers.
std::vector<std::pair<std::string, nlohmann::json>> optimizer_settings(
    const model::ParameterSpec& parameter, const recipe::Optimizer& optimizer,
    double learning_rate);

}  // namespace ptrain::train
