#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/recipe/recipe.h"

namespace ptrain::recipe {

using Value = std::variant<bool, std::int64_t, double, std::string>;  // a choice: its word
enum class FieldType { kBoolean, kInteger, kNumber, kText, kChoice };

// Allowed values of a number; an open end is not itself allowed.
struct Range {
  double least = 0;
  double most = std::numeric_limits<double>::max();
  bool open_least = false;
  bool open_most = false;
};

// One field of the recipe. `path` names it: `shapes[].steps` is a field of every entry of the list
// `shapes`, `optimizer.betas.0` the first of a list of fixed length.
struct Field {
  std::string path = {};
  FieldType type = FieldType::kText;
  std::string unit = {};
  bool required = false;
  Range range = {};
  std::vector<std::string> choices = {};
  std::vector<std::string> unavailable = {};  // choices that later versions will have
  std::string zero_word = {};                 // written in place of 0, such as `auto`
  std::string absent_word = {};               // is itself the value where there is no number
  bool by_commas = false;                     // a text of several values
  std::string description = {};
  // The second argument is the entry of the list, where the path has one.
  std::function<void(Recipe&, std::size_t, const Value&)> set = {};
  std::function<Value(const Recipe&, std::size_t)> get = {};
};

struct List {
  std::string path;  // without []
  std::string description;
  std::function<std::size_t(const Recipe&)> size;
  std::function<void(Recipe&, std::size_t)> resize;
};

enum class SectionState { kAbsent, kAutomatic, kFields };

// A section that may be left to the planner by the word `auto`.
struct AutoSection {
  std::string path;
  std::function<void(Recipe&, std::size_t, SectionState)> set;
  std::function<SectionState(const Recipe&, std::size_t)> get;
};

// A key that has a meaning in later versions: refused, unless its one value says what happens
// anyway.
struct Reserved {
  std::string path;
  std::string feature;
  std::string accepted = {};
};

// The table: all that a recipe may say. Reader, JSON form, reference and error texts come from it.
const std::vector<Field>& fields();
const std::vector<List>& lists();
const std::vector<AutoSection>& auto_sections();
const std::vector<Reserved>& reserved_keys();

// Looked up by the path of the table, null when there is none.
const Field* find_field(std::string_view path);
const List* find_list(std::string_view path);
const AutoSection* find_auto_section(std::string_view path);
// The one that a field lies in, at any depth.
const AutoSection* auto_section_around(std::string_view path);
const Reserved* find_reserved(std::string_view path);

// The names that may follow `path`, in the order of the table; "" = the top.
std::vector<std::string> child_names(std::string_view path);

// "1 to 64", "fp32, fp64", "true, false"; empty when anything goes.
std::string allowed_values(const Field& field);

// The path of the table with the entry's number put in: shapes[].steps, 1 -> shapes.1.steps.
std::string path_of_entry(std::string_view path, std::size_t entry);

}  // namespace ptrain::recipe
