#pragma once

#include <string>

#include "core/recipe/data.h"

namespace ptrain::data {

// What makes tokens of a text beside the text itself, as a word: two recipes with the same word
// give the same tokens. A file counts by its hash, which the recipe must have.
std::string tokenizer_identity(const recipe::Data& data);

}  // namespace ptrain::data
