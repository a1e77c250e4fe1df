#pragma once

#include <cstdint>

#include "core/recipe/recipe.h"

namespace ptrain::recipe {

inline constexpr std::int64_t kByteTokens = 258;  // 256 bytes, end of document, padding

// Steps of a shape that gives steps or tokens; tokens are rounded up to whole steps.
std::int64_t steps_of(const Shape& shape);

// Rows of the embedding for so many tokens: a multiple of 64, as matmuls are quicker on whole cache
// lines.
std::int64_t padded_vocabulary(std::int64_t num_tokens);

// Fills in what a checked recipe leaves to other fields: sizes of the model, lengths of shapes.
Recipe resolve(Recipe recipe);

}  // namespace ptrain::recipe
