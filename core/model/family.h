#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/model/decoder.h"

namespace ptrain::model {

// How a family's config.json differs from the recipe's fields.
struct HfDialect {
  std::string model_type = {};
  std::string architecture = {};                                // class of transformers
  std::vector<std::pair<std::string, std::string>> names = {};  // our field, their name
  recipe::Model defaults = {};  // of transformers, where the file leaves a field out
  // Fields that, where they are given, must be so: true or false.
  std::vector<std::pair<std::string, bool>> fixed = {};
  bool has_window_switch = false;  // use_sliding_window: false drops the window

  // What the file calls our field.
  std::string name_of(std::string_view field) const;
};

// One family of models: a file in families/.
struct Family {
  std::string name;                                  // model.family
  std::vector<std::string_view> fields;              // those of optional_fields() that it uses
  void (*complete)(recipe::Model& model) = nullptr;  // its values for what is left open
  Decoder (*decoder)(const recipe::Model& model) = nullptr;  // of a complete model
  HfDialect hf;

  bool uses(std::string_view field) const;  // of optional_fields()
};

std::span<const Family> all_families();
// Error (kUsage): no such family.
Result<const Family*> find_family(std::string_view name);

// A field of recipe::Model that not every family uses.
struct OptionalField {
  std::string_view name;
  bool (*is_set)(const recipe::Model& model);
};
std::span<const OptionalField> optional_fields();

// The fields that are set although the model's family has no use for them; none where there is no
// such family.
std::vector<std::string_view> unused_fields(const recipe::Model& model);

// The model with its family's values for what is left open, unchecked.
recipe::Model with_defaults(recipe::Model model);

// Rows of the model's table of learned positions, which no row of tokens may exceed; 0: it has no
// such table.
std::int64_t learned_positions(const recipe::Model& model);

// The model with every size and every field that its family uses filled in. Errors (kUsage): sizes
// that are missing or do not divide, fields that the family has no use for.
Result<recipe::Model> complete(recipe::Model model);

}  // namespace ptrain::model
