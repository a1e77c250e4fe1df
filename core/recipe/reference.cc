#include "core/recipe/reference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

#include "core/recipe/field.h"

namespace ptrain::recipe {
namespace {

constexpr std::string_view kPreface = R"(# The recipe

A recipe is one YAML file that says what to train. This page is made from the table of fields that
also reads recipes: it is complete, and a key that is not here is refused. All faults of a recipe
are reported together, each with its file, line and column.

- `ptrain ... a.b=value` changes a field on the command line: `shapes.0.steps=20` the first shape.
  The value is YAML.
- Numbers are plain decimal numbers in the unit of the field: no suffixes (`4k`, `10s`), no quotes,
  no leading zeros (`012`), no base 60 (`12:30`), no grouped digits. `1e-3` is a float.
- Booleans are `true` and `false`; `yes`, `no`, `on` and `off` are not.
- The file is UTF-8 without a byte order mark, at most 1 MiB, one document, indented with spaces,
  nested at most 32 deep, without anchors, aliases and tags. No key may be given twice.
- `[]` in a name stands for each entry of a list.
)";

std::string_view type_name(const Field& field) {
  switch (field.type) {
    case FieldType::kBoolean:
      return "boolean";
    case FieldType::kInteger:
      return "integer";
    case FieldType::kNumber:
      return "number";
    case FieldType::kText:
      return "text";
    case FieldType::kChoice:
      return "choice";
  }
  return "";
}

// A recipe with an entry in each list, so that every field has a default to show.
Recipe sample() {
  Recipe recipe;
  for (const List& list : lists()) list.resize(recipe, 1);
  recipe.shapes[0].parallel.emplace();
  return recipe;
}

struct DefaultText {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return fmt::format("{}", value); }
  std::string operator()(const std::string& value) const { return value; }
};

std::string default_text(const Field& field) {
  if (field.required) return "required";
  const std::string text = std::visit(DefaultText{}, field.get(sample(), 0));
  if (text.empty()) return "empty";
  return !field.zero_word.empty() && text == "0" ? field.zero_word : text;
}

std::string section_of(const Field& field) {
  const std::size_t dot = field.path.find_first_of(".[");
  return dot == std::string::npos ? "" : field.path.substr(0, dot);
}

std::string heading(const std::string& section) {
  std::string text = section.empty() ? "\n## Top\n\n" : fmt::format("\n## {}\n\n", section);
  for (const List& list : lists()) {
    const bool here = list.path == section || list.path.starts_with(section + ".");
    if (!section.empty() && here)
      text += fmt::format("`{}` is a list: {}\n\n", list.path, list.description);
  }
  for (const AutoSection& choice : auto_sections()) {
    if (section.empty() || !choice.path.starts_with(section)) continue;
    text +=
        fmt::format("`{}` may be the word `auto`: the planner chooses all of it.\n\n", choice.path);
  }
  return text +
         "| field | type | unit | default | allowed | meaning |\n|---|---|---|---|---|---|\n";
}

std::string table_row(const Field& field) {
  const std::string allowed = allowed_values(field);
  return fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", field.path, type_name(field),
                     field.unit, default_text(field), allowed, field.description);
}

std::string unavailable() {
  std::string text =
      "\n## Not in this version\n\nThese keys and values are known, and refused with a message; a "
      "value "
      "in the second column is accepted,\nbecause it says what happens anyway.\n\n"
      "| key | accepted | stands for |\n|---|---|---|\n";
  for (const Reserved& key : reserved_keys()) {
    text += fmt::format("| `{}` | {} | {} |\n", key.path, key.accepted, key.feature);
  }
  text += "\n| field | values to come |\n|---|---|\n";
  for (const Field& field : fields()) {
    if (field.unavailable.empty()) continue;
    text += fmt::format("| `{}` | {} |\n", field.path, fmt::join(field.unavailable, ", "));
  }
  return text;
}

}  // namespace

std::string recipe_reference() {
  std::string text(kPreface);
  std::string section = "-";
  for (const Field& field : fields()) {
    if (section_of(field) != section) text += heading(section = section_of(field));
    text += table_row(field);
  }
  return text + unavailable();
}

}  // namespace ptrain::recipe
