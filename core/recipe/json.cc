#include "core/recipe/json.h"

#include <nlohmann/json.hpp>

#include "core/recipe/field.h"
#include "core/recipe/read.h"

namespace ptrain::recipe {
namespace {

using nlohmann::json;

json::json_pointer pointer_to(const std::string& path) {
  std::string text = "/";
  for (const char c : path) text += c == '.' ? '/' : c;
  return json::json_pointer(text);
}

// Entries of the list in the field's path; one where there is none.
std::size_t num_entries(const Recipe& recipe, const std::string& path) {
  const std::size_t bracket = path.find("[]");
  return bracket == std::string::npos ? 1 : find_list(path.substr(0, bracket))->size(recipe);
}

bool is_zero(const Value& value) { return value == Value(std::int64_t{0}) || value == Value(0.0); }

json value_of(const Field& field, const Value& value) {
  if (!field.zero_word.empty() && is_zero(value)) return field.zero_word;
  return std::visit([](const auto& plain) { return json(plain); }, value);
}

// Whether the field has a place in the JSON: not inside a section that is absent or `auto`.
bool is_written(const Field& field, const Recipe& recipe, std::size_t entry) {
  const AutoSection* section = auto_section_around(field.path);
  return section == nullptr || section->get(recipe, entry) == SectionState::kFields;
}

// JSON as the reader's document. Its errors name the place inside the JSON by path only.
Result<Node> node_of(const json& value, int depth) {
  constexpr int kDeepest = 32;
  if (depth > kDeepest) return fail(ExitCode::kUsage, "the recipe in JSON is nested too deeply");
  Node node;
  node.place.file = node.key_place.file = "JSON";
  if (value.is_structured()) {
    node.kind = value.is_object() ? Node::Kind::kMapping : Node::Kind::kSequence;
    for (const auto& [key, item] : value.items()) {
      PTRAIN_TRY(Node child, node_of(item, depth + 1));
      if (value.is_object()) child.key = key;
      node.children.push_back(std::move(child));
    }
  } else if (!value.is_null()) {
    node.kind = Node::Kind::kScalar;
    node.quoted = value.is_string();
    node.text = node.quoted ? value.get<std::string>() : value.dump();
  }
  return node;
}

}  // namespace

json to_json(const Recipe& recipe) {
  json out = json::object();
  for (const List& list : lists()) out[pointer_to(list.path)] = json::array();
  for (const Field& field : fields()) {
    for (std::size_t i = 0; i < num_entries(recipe, field.path); ++i) {
      if (!is_written(field, recipe, i)) continue;
      out[pointer_to(path_of_entry(field.path, i))] = value_of(field, field.get(recipe, i));
    }
  }
  for (const AutoSection& section : auto_sections()) {
    for (std::size_t i = 0; i < num_entries(recipe, section.path); ++i) {
      if (section.get(recipe, i) != SectionState::kAutomatic) continue;
      out[pointer_to(path_of_entry(section.path, i))] = "auto";
    }
  }
  return out;
}

Result<Recipe> from_json(const json& value) {
  PTRAIN_TRY(const Node root, node_of(value, 0));
  Reading reading = read_document(root);
  if (!reading.violations.empty()) {
    return tl::unexpected(report("the recipe in JSON", std::move(reading.violations)));
  }
  return std::move(reading.recipe);
}

std::vector<Violation> violations_of(const Model& model) {
  Recipe recipe;
  recipe.model = model;
  const auto root = node_of({{"model", to_json(recipe)["model"]}}, 0);
  std::vector<Violation> found = root ? read_document(*root).violations : std::vector<Violation>{};
  std::erase_if(found, [](const Violation& fault) { return !fault.path.starts_with("model."); });
  return found;
}

}  // namespace ptrain::recipe
