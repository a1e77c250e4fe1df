#pragma once

#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "core/base/dtype.h"
#include "core/recipe/recipe.h"

namespace ptrain::recipe {

// What `parallel` says of each stage of a pipeline, in model order, separated by commas. The error
// says which entry is wrong and what is allowed, without the field's path.
template <class T>
using StageList = tl::expected<std::vector<T>, std::string>;

StageList<int> stage_layers_in(const std::string& text);           // "9,8,9": from 1 up
StageList<Recompute> stage_recompute_in(const std::string& text);  // "none,full"
StageList<DType> stage_dtypes_in(const std::string& text);         // "fp32,bf16"

}  // namespace ptrain::recipe
