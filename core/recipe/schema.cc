#include "core/recipe/schema.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/recipe/field.h"

namespace ptrain::recipe {
namespace {

using nlohmann::ordered_json;

ordered_json described(const std::string& text) { return {{"description", text}}; }

void add_range(const Field& field, ordered_json& schema) {
  const bool is_integer = field.type == FieldType::kInteger;
  const auto number = [&](double value) {
    return is_integer ? ordered_json(static_cast<std::int64_t>(value)) : ordered_json(value);
  };
  // An integer end that no double holds exactly is left to the reader.
  constexpr double kMostExact = 9007199254740992.0;
  const auto& range = field.range;
  if (range.least > -kMostExact)
    schema[range.open_least ? "exclusiveMinimum" : "minimum"] = number(range.least);
  if (range.most < kMostExact)
    schema[range.open_most ? "exclusiveMaximum" : "maximum"] = number(range.most);
}

ordered_json value_schema(const Field& field) {
  switch (field.type) {
    case FieldType::kBoolean:
      return {{"type", "boolean"}};
    case FieldType::kText:
      return {{"type", "string"}};
    case FieldType::kChoice:
      return {{"enum", field.choices}};
    case FieldType::kInteger:
    case FieldType::kNumber:
      break;
  }
  ordered_json schema{{"type", field.type == FieldType::kInteger ? "integer" : "number"}};
  add_range(field, schema);
  return schema;
}

ordered_json field_schema(const Field& field) {
  const std::string unit = field.unit.empty() ? "" : " Unit: " + field.unit + ".";
  ordered_json schema = described(field.description + unit);
  ordered_json words = ordered_json::array();
  for (const auto& word : {field.zero_word, field.absent_word})
    if (!word.empty()) words.push_back(word);
  if (words.empty()) {
    schema.update(value_schema(field));
  } else {
    schema["anyOf"] = {value_schema(field), {{"enum", words}}};
  }
  return schema;
}

bool is_number(std::string_view name) {
  return !name.empty() &&
         std::ranges::all_of(name, [](unsigned char c) { return std::isdigit(c); });
}

std::string joined(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

ordered_json schema_at(const std::string& path);

// What may stand in a mapping, or at the places of a list of fixed length.
ordered_json section_schema(const std::string& path, const std::vector<std::string>& names) {
  if (is_number(names.front())) {
    ordered_json places = ordered_json::array();
    for (const auto& name : names) places.push_back(schema_at(joined(path, name)));
    return {{"type", "array"},
            {"items", places},
            {"minItems", names.size()},
            {"maxItems", names.size()}};
  }
  ordered_json schema{{"type", "object"}, {"additionalProperties", false}};
  ordered_json required = ordered_json::array();
  for (const auto& name : names) {
    schema["properties"][name] = schema_at(joined(path, name));
    const Field* field = find_field(joined(path, name));
    if (field != nullptr && field->required) required.push_back(name);
  }
  for (const Reserved& key : reserved_keys())
    if (!key.accepted.empty() && key.path.starts_with(joined(path, "")) &&
        key.path.find_first_of(".[", path.size() + 1) == key.path.npos)
      schema["properties"][key.path.substr(path.size() + 1)] = {
          {"description", "Not in this version: " + key.feature + "."},
          {"const", ordered_json::parse(key.accepted)}};
  // A model's fields may all stand in the file that it names.
  if (!required.empty() && path != "model") schema["required"] = required;
  return schema;
}

ordered_json schema_at(const std::string& path) {
  if (const Field* field = find_field(path)) return field_schema(*field);
  if (const List* list = find_list(path)) {
    ordered_json schema = described(list->description);
    schema["type"] = "array";
    schema["items"] = schema_at(path + "[]");
    return schema;
  }
  ordered_json section = section_schema(path, child_names(path));
  if (find_auto_section(path) == nullptr) return section;
  return {{"anyOf", {{{"const", "auto"}}, section}}};
}

}  // namespace

std::string recipe_schema() {
  ordered_json schema{{"$schema", "http://json-schema.org/draft-07/schema#"},
                      {"title", "A recipe of ptrain"}};
  schema.update(schema_at(""));
  return schema.dump(1) + "\n";
}

}  // namespace ptrain::recipe
