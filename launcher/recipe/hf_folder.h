#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/recipe/node.h"
#include "core/recipe/read.h"
#include "core/recipe/recipe.h"
#include "launcher/recipe/reader.h"

namespace ptrain::recipe {

// What a recipe's `model.hf` says.
struct HfModel {
  bool is_named = false;
  std::optional<Model> model;  // of config.json; none: a violation says why
  std::vector<std::string> warnings;
};

// Reads FOLDER/config.json for `model: {hf: FOLDER}`. Fields beside hf are violations: the folder
// says them all.
HfModel read_hf_model(const Node& root, const FindModel& find_model,
                      std::vector<Violation>& violations);

// Whether the weights in the recipe's folder are those of its model, as far as the headers of the
// files tell; nothing where it names no folder. Errors (kUnusable) list all that is wrong. Gives
// what the user should know.
Result<std::vector<std::string>> check_weights(const Recipe& recipe);

}  // namespace ptrain::recipe
