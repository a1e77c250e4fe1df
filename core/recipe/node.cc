#include "core/recipe/node.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <tuple>

namespace ptrain::recipe {

const Node* Node::child(std::string_view name) const {
  if (kind == Kind::kSequence) {
    std::size_t index = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
    const bool is_index = error == std::errc() && end == name.data() + name.size();
    return is_index && index < children.size() ? &children[index] : nullptr;
  }
  if (kind != Kind::kMapping) return nullptr;
  const auto found = std::find_if(children.begin(), children.end(),
                                  [&](const Node& entry) { return entry.key == name; });
  return found == children.end() ? nullptr : &*found;
}

Node* Node::child(std::string_view name) {
  return const_cast<Node*>(std::as_const(*this).child(name));
}

Place place_of(const Node& root, std::string_view path) {
  const Node* node = &root;
  while (!path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    const Node* next = node->child(path.substr(0, dot));
    if (next == nullptr) break;
    node = next;
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  const bool at_key = node->kind == Node::Kind::kNull || !path.empty();
  return at_key && !node->key.empty() ? node->key_place : node->place;
}

Error report(const std::string& what, std::vector<Violation> violations) {
  std::stable_sort(violations.begin(), violations.end(), [](const auto& a, const auto& b) {
    return std::tie(a.place.file, a.place.line, a.place.column) <
           std::tie(b.place.file, b.place.line, b.place.column);
  });
  constexpr std::size_t kMostShown = 50;
  std::string text =
      fmt::format("{} has {} error{}", what, violations.size(), violations.size() == 1 ? "" : "s");
  for (std::size_t i = 0; i < std::min(violations.size(), kMostShown); ++i) {
    const auto& [place, path, message] = violations[i];
    text += "\n  " + place.file;
    if (place.line > 0) text += fmt::format(":{}:{}", place.line, place.column);
    text += path.empty() ? ": " + message : fmt::format(": {}: {}", path, message);
  }
  if (violations.size() > kMostShown) {
    text += fmt::format("\n  and {} more", violations.size() - kMostShown);
  }
  return Error{ExitCode::kUsage, text, "every field is described in docs/recipe.md", {}};
}

std::string shown(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // Cut between characters: a byte 10xxxxxx continues one.
    if (i >= kLongest && (byte & 0xC0) != 0x80) return out + "...";
    const bool is_c1 =
        byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (is_c1) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[++i]));
    if (is_c1) continue;
    out += byte < 0x20 || byte == 0x7F ? fmt::format("\\x{:02x}", byte) : std::string(1, text[i]);
  }
  return out;
}

}  // namespace ptrain::recipe
