#include "core/recipe/read.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/recipe/field.h"
#include "core/recipe/scalar.h"
#include "core/recipe/spelling.h"

namespace ptrain::recipe {
namespace {

using Kind = Node::Kind;

std::string join_path(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
}

std::string describe(const Node& node) {
  switch (node.kind) {
    case Kind::kNull:
      return "nothing";
    case Kind::kSequence:
      return fmt::format("a list of {}", node.children.size());
    case Kind::kMapping:
      return "a mapping";
    default:
      return fmt::format("'{}'", shown(node.text));
  }
}

// Walks a document and the table side by side. `path` is a path of the table; `entry_` the entry
// of the list that is being read.
class Reader {
 public:
  Reader(const Node& root, std::string_view incomplete) : root_(root), incomplete_(incomplete) {}

  Reading read() {
    read_mapping(root_, "");
    for (const Field& field : fields()) {
      const bool exempt = !incomplete_.empty() && field.path.starts_with(incomplete_);
      if (field.required && !exempt) check_present(field);
    }
    return std::move(reading_);
  }

 private:
  void complain(const Place& place, const std::string& path, std::string_view message) {
    reading_.violations.push_back({place, path_of_entry(path, entry_), std::string(message)});
  }

  void expected(const Node& node, const std::string& path, std::string_view what) {
    const bool at_key = node.kind == Kind::kNull && !node.key.empty();
    complain(at_key ? node.key_place : node.place, path,
             fmt::format("expected {}, found {}", what, describe(node)));
  }

  void read_value(const Node& node, const std::string& path) {
    if (node.kind == Kind::kBroken) return;
    if (const Reserved* key = find_reserved(path)) return read_reserved(node, *key);
    if (const Field* field = find_field(path)) return read_field(node, *field);
    if (const List* list = find_list(path)) return read_list(node, *list);
    if (const AutoSection* section = find_auto_section(path)) return read_auto(node, *section);
    if (find_field(path + ".0") != nullptr) return read_fixed_list(node, path);
    read_mapping(node, path);
  }

  void read_mapping(const Node& node, const std::string& path) {
    const std::vector<std::string> names = child_names(path);
    if (node.kind == Kind::kBroken) return;
    if (node.kind != Kind::kMapping) {
      return expected(node, path, fmt::format("a mapping with {}", fmt::join(names, ", ")));
    }
    for (const Node& child : node.children) {
      const std::string child_path = join_path(path, child.key);
      const bool known = std::find(names.begin(), names.end(), child.key) != names.end();
      if (known || find_reserved(child_path) != nullptr) {
        read_value(child, child_path);
      } else {
        complain_unknown(child, path, names);
      }
    }
  }

  void complain_unknown(const Node& child, const std::string& path,
                        const std::vector<std::string>& names) {
    const std::string near = nearest(child.key, names);
    complain(
        child.key_place, path,
        fmt::format("unknown key '{}'; allowed: {}{}", shown(child.key), fmt::join(names, ", "),
                    near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
  }

  void read_reserved(const Node& node, const Reserved& key) {
    if (node.kind == Kind::kScalar && !key.accepted.empty() && node.text == key.accepted) return;
    complain(node.key_place, key.path,
             fmt::format("{} is not available in this version; {}", key.feature,
                         key.accepted.empty() ? "leave this key out" : "allowed: " + key.accepted));
  }

  // What a list was meant to be.
  static std::string with_commas(const Node& list) {
    std::vector<std::string> values;
    for (const Node& child : list.children) values.push_back(shown(child.text));
    return fmt::format("one value with commas: '{}'", fmt::join(values, ","));
  }

  void read_field(const Node& node, const Field& field) {
    if (field.by_commas && node.kind == Kind::kSequence)
      return expected(node, field.path, with_commas(node));
    if (node.kind != Kind::kScalar) {
      const std::string allowed = allowed_values(field);
      const std::string unit = field.unit.empty() ? "" : " in " + field.unit;
      return expected(node, field.path,
                      fmt::format("one value{}{}", unit,
                                  allowed.empty() ? "" : fmt::format(" (allowed: {})", allowed)));
    }
    const auto value = parse_value(field, node);
    if (!value) return complain(node.place, field.path, value.error());
    field.set(reading_.recipe, entry_, *value);
  }

  void read_list(const Node& node, const List& list) {
    constexpr std::size_t kMostEntries = 4096;
    if (node.kind != Kind::kSequence) return expected(node, list.path, "a list");
    if (node.children.size() > kMostEntries) {
      return complain(node.place, list.path, fmt::format("more than {} entries", kMostEntries));
    }
    list.resize(reading_.recipe, node.children.size());
    for (entry_ = 0; entry_ < node.children.size(); ++entry_) {
      read_value(node.children[entry_], list.path + "[]");
    }
    entry_ = 0;
  }

  void read_auto(const Node& node, const AutoSection& section) {
    if (node.kind == Kind::kScalar && node.text == "auto") {
      return section.set(reading_.recipe, entry_, SectionState::kAutomatic);
    }
    if (node.kind != Kind::kMapping) {
      const auto names = child_names(section.path);
      return expected(node, section.path,
                      fmt::format("auto, or a mapping with {}", fmt::join(names, ", ")));
    }
    section.set(reading_.recipe, entry_, SectionState::kFields);
    read_mapping(node, section.path);
  }

  void read_fixed_list(const Node& node, const std::string& path) {
    const std::size_t size = child_names(path).size();
    if (node.kind != Kind::kSequence || node.children.size() != size) {
      return expected(node, path, fmt::format("a list of {} values", size));
    }
    for (std::size_t i = 0; i < size; ++i) {
      read_value(node.children[i], fmt::format("{}.{}", path, i));
    }
  }

  void check_present(const Field& field) {
    const std::size_t bracket = field.path.find("[]");
    if (bracket == std::string::npos) return check_present(field, field.path);
    const std::size_t size = find_list(field.path.substr(0, bracket))->size(reading_.recipe);
    for (std::size_t i = 0; i < size; ++i) check_present(field, path_of_entry(field.path, i));
  }

  // Reports a missing field unless something above it is there and was already refused.
  void check_present(const Field& field, const std::string& path) {
    const Node* node = &root_;
    std::size_t begin = 0;
    while (begin < path.size()) {
      const std::size_t dot = std::min(path.find('.', begin), path.size());
      const Node* next = node->child(std::string_view(path).substr(begin, dot - begin));
      if (next == nullptr && node->kind != Kind::kMapping) return;
      if (next == nullptr) break;
      node = next;
      begin = dot + 1;
    }
    if (begin >= path.size()) return;
    reading_.violations.push_back(
        {place_of(root_, path), path, "required, but missing: " + field.description});
  }

  const Node& root_;
  const std::string_view incomplete_;
  Reading reading_;
  std::size_t entry_ = 0;
};

}  // namespace

Reading read_document(const Node& root, std::string_view incomplete) {
  return Reader(root, incomplete).read();
}

}  // namespace ptrain::recipe
