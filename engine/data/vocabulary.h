#pragma once

#include <vector>

#include "core/recipe/recipe.h"
#include "engine/data/index.h"

namespace ptrain::data {

// EngineError (kUnusable) where the index holds a token beyond the model's vocabulary: names the
// first such document. `sources`: the entries that the index is of.
void check_vocabulary(const Index& index, const std::vector<recipe::DataSource>& sources,
                      const recipe::Model& model);

// The entries of the validation's index: a share of data.train where no texts of its own are given.
inline const std::vector<recipe::DataSource>& held_out(const recipe::Data& data) {
  return data.validation.empty() ? data.train : data.validation;
}

}  // namespace ptrain::data
