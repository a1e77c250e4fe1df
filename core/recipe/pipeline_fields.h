#pragma once

#include <string_view>
#include <vector>

#include "core/recipe/recipe.h"

namespace ptrain::recipe {

// A field of `parallel` that has a meaning in a pipeline only.
struct PipelineField {
  std::string_view name;  // embedding
  std::string_view text;  // what asks for a pipeline, as one says it: embedding: all_stages
};

// Those that a recipe gives.
std::vector<PipelineField> pipeline_fields_in(const Parallel& parallel);

}  // namespace ptrain::recipe
