#pragma once

#include <string>
#include <vector>

#include "core/recipe/recipe.h"

namespace ptrain::checkpoint {

struct TokenizerFile {
  std::string from;  // path
  std::string name;  // in the exported folder
};

// What belongs beside a model's weights so that others can encode its text: the tokenizer files of
// the Hugging Face folder that the model began from, or the recipe's SentencePiece model. None for
// a model of bytes. `recipe_folder`: what a relative path in the recipe starts from; empty: not
// known. Only the names listed here are taken, and only regular files of a tokenizer's size.
std::vector<TokenizerFile> tokenizer_files(const recipe::Recipe& recipe,
                                           const std::string& recipe_folder);

// A sentence where the recipe names a tokenizer, but none is among `files`; else empty.
std::string missing_tokenizer(const recipe::Recipe& recipe,
                              const std::vector<TokenizerFile>& files);

}  // namespace ptrain::checkpoint
