#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/result.h"
#include "core/recipe/recipe.h"

namespace ptrain::model {

struct HfConfig {
  recipe::Model model;                // every size of the file; `file` is empty
  std::vector<std::string> warnings;  // fields that are not used, and why that may matter
};

// The config.json of a Hugging Face folder, in the spelling of transformers 4 or 5. What it does
// not tell has the default of transformers. Errors (kUsage): all that this version cannot train,
// at once, each with its field.
Result<HfConfig> from_hf_config(std::string_view config_json);

// A config.json from which transformers (4 and 5) makes the same model. `dtype`: of the weights
// beside it. The model is that of an Architecture: every size filled in.
Result<std::string> to_hf_config(const recipe::Model& model, DType dtype);

}  // namespace ptrain::model
