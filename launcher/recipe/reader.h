#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/recipe/recipe.h"
#include "launcher/recipe/tokenizer_file.h"

namespace ptrain::recipe {

struct LoadedRecipe {
  Recipe recipe;                   // resolved: every field has a value
  std::string folder;              // absolute; what relative paths in the recipe start from
  std::string text;                // of the file, as given
  std::string hash;                // identity_of(recipe)
  std::vector<std::string> notes;  // what the user should know of the model's folder
};

struct NamedText {
  std::string path;
  std::string text;
};

// Finds the text of `model.file`, or of config.json in `model.hf`; its error becomes one of the
// recipe's.
using FindModel = std::function<Result<NamedText>(const std::string& file)>;

// Reads a recipe and applies overrides `a.b=value` in their order. `model.file` is looked for
// beside the recipe, then in configs/models of this installation. Errors (kUsage) list everything
// that is wrong with the recipe at once. `folder`: where the recipe first lay, when this file is a
// run's copy of it.
Result<LoadedRecipe> read_recipe(const std::string& path, const std::vector<std::string>& overrides,
                                 const std::string& folder = "");

// The same from a text, without touching a file; `file` is its name in errors. Without
// find_tokenizer what a tokenizer's file says stays open.
Result<Recipe> read_recipe_text(const NamedText& file, const std::vector<std::string>& overrides,
                                const FindModel& find_model,
                                std::vector<std::string>* notes = nullptr,
                                const FindTokenizer& find_tokenizer = {});

// Equal for recipes of equal values, however these were given; the name of the model's file, and
// what is asked of Slurm, are no part of it.
std::string identity_of(const Recipe& recipe);

// A resolved recipe with overrides, checked and resolved again.
Result<Recipe> override_recipe(const Recipe& recipe, const std::vector<std::string>& overrides);

}  // namespace ptrain::recipe
