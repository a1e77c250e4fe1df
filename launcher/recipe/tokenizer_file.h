#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/recipe/node.h"
#include "core/recipe/read.h"
#include "core/recipe/recipe.h"

namespace ptrain::recipe {

// The bytes of the file that data.tokenizer_file names.
using FindTokenizer = std::function<Result<std::string>(const std::string& file)>;

// Fills in what a recipe leaves to the tokenizer's file: its hash, and the size of the vocabulary.
// Adds a violation for a file that is missing, damaged, another than the recipe's hash says, or has
// more pieces than the model has tokens.
void settle_tokenizer(const Node& root, const FindTokenizer& find, Recipe& recipe,
                      std::vector<Violation>& violations);

}  // namespace ptrain::recipe
