#include "launcher/recipe/override.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "core/recipe/field.h"
#include "launcher/recipe/yaml.h"

namespace ptrain::recipe {
namespace {

using Kind = Node::Kind;

void replace_places(Node& node, const Place& place) {
  node.place = node.key_place = place;
  for (Node& child : node.children) replace_places(child, place);
}

// The default values of a list of fixed length that the document leaves out, such as betas.
Node defaults_of(const std::string& list, const Place& place) {
  Node node;
  node.place = node.key_place = place;
  for (int i = 0; const Field* field = find_field(fmt::format("{}.{}", list, i)); ++i) {
    node.kind = Kind::kSequence;
    Node& entry = node.children.emplace_back();
    entry.kind = Kind::kScalar;
    entry.place = entry.key_place = place;
    std::visit([&](const auto& value) { entry.text = fmt::format("{}", value); },
               field->get(Recipe{}, 0));
  }
  return node;
}

// The part `name` of `node`, made where a mapping lacks it; null where a list has no such entry.
Node* step_into(Node& node, const std::string& name, const Place& place) {
  if (Node* child = node.child(name)) return child;
  if (node.kind == Kind::kSequence) return nullptr;
  if (node.kind != Kind::kMapping) {
    node.kind = Kind::kMapping;  // such as `parallel: auto` before parallel.dp=2
    node.place = place;
    node.children.clear();
  }
  Node made;
  made.key = name;
  made.place = made.key_place = place;
  node.children.push_back(std::move(made));
  return &node.children.back();
}

Node* find_target(Node& root, std::string path, const Place& place,
                  std::vector<Violation>& violations) {
  Node* node = &root;
  std::size_t begin = 0;
  for (path += '.'; begin < path.size();) {
    const std::size_t dot = path.find('.', begin);
    const std::string name = path.substr(begin, dot - begin);
    begin = dot + 1;
    Node* next = step_into(*node, name, place);
    if (next != nullptr && next->kind == Kind::kNull && begin < path.size()) {
      Node list = defaults_of(path.substr(0, dot), place);
      list.key = name;
      *next = std::move(list);
    }
    if (next == nullptr) {
      violations.push_back({place, "",
                            fmt::format("there is no entry '{}': the list has {}, counted from 0",
                                        shown(name), node->children.size())});
      return nullptr;
    }
    node = next;
  }
  return node;
}

}  // namespace

void apply_override(Node& root, const std::string& text, std::vector<Violation>& violations) {
  const Place place{fmt::format("override '{}'", shown(text)), 0, 0};
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) {
    violations.push_back({place, "", "has no '='; write name=value"});
    return;
  }
  if (text.find_first_not_of(' ', equals + 1) == std::string::npos) {
    violations.push_back({place, "", "nothing follows '='; an empty text is name='\"\"'"});
    return;
  }
  std::vector<Violation> faults;
  Node value = parse_yaml(std::string_view(text).substr(equals + 1), place.file, faults);
  for (Violation& fault : faults) violations.push_back({place, "", std::move(fault.message)});
  if (root.kind != Kind::kMapping || value.kind == Kind::kBroken) return;
  const std::string path = text.substr(0, equals);
  if (std::count(path.begin(), path.end(), '.') >= kDeepestYaml) {
    violations.push_back({place, "", fmt::format("nested more than {} deep", kDeepestYaml)});
    return;
  }
  if (("." + path + ".").find("..") != std::string::npos) {
    violations.push_back({place, "", "the name before '=' has an empty part"});
    return;
  }
  Node* target = find_target(root, path, place, violations);
  if (target == nullptr) return;
  replace_places(value, place);
  const std::string key = target->key;
  *target = std::move(value);
  target->key = key;
}

}  // namespace ptrain::recipe
