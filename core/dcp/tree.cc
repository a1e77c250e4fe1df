#include "core/dcp/tree.h"

#include <algorithm>

namespace ptrain::dcp {

bool Tree::is_global(NodeId id, std::string_view module, std::string_view name) const {
  const Node& node = at(id);
  return node.kind == Kind::kGlobal && at(node.items[0]).text == module &&
         at(node.items[1]).text == name;
}

std::string_view Tree::global_name(NodeId id) const {
  const Node& node = at(id);
  return node.kind == Kind::kGlobal ? at(node.items[1]).text : std::string_view{};
}

std::optional<NodeId> Tree::find(NodeId dict, std::string_view key) const {
  const Node& node = at(dict);
  if (node.kind != Kind::kDict) return std::nullopt;
  for (std::size_t i = 0; i + 1 < node.items.size(); i += 2)
    if (at(node.items[i]).kind == Kind::kText && at(node.items[i]).text == key)
      return node.items[i + 1];
  return std::nullopt;
}

// Depth-first with an own stack.
std::string graph_problem(const Tree& tree, int max_depth) {
  enum : std::uint8_t { kNew, kOpen, kClosed };
  std::vector<std::uint8_t> color(tree.nodes.size(), kNew);
  std::vector<std::uint8_t> height(tree.nodes.size(), 0);
  struct Visit {
    NodeId id;
    std::size_t next;
  };
  std::vector<Visit> path{{tree.root, 0}};
  color[tree.root] = kOpen;
  while (!path.empty()) {
    const NodeId id = path.back().id;
    const std::vector<NodeId>& items = tree.at(id).items;
    if (path.back().next == items.size()) {
      color[id] = kClosed;
      path.pop_back();
      if (path.empty()) return {};
      std::uint8_t& parent = height[path.back().id];
      parent = std::max(parent, static_cast<std::uint8_t>(height[id] + 1));
      if (parent > max_depth) return "values are nested too deep";
      continue;
    }
    const NodeId child = items[path.back().next++];
    if (color[child] == kOpen) return "a value contains itself";
    if (color[child] == kClosed) {
      height[id] = std::max(height[id], static_cast<std::uint8_t>(height[child] + 1));
      if (height[id] > max_depth) return "values are nested too deep";
      continue;
    }
    color[child] = kOpen;
    path.push_back({child, 0});
  }
  return {};
}

}  // namespace ptrain::dcp
