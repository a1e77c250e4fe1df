#include "core/dcp/tree.h"

#include <algorithm>
#include <bit>

namespace ptrain::dcp {

Tree::Tree() : memory_(std::make_unique<std::pmr::monotonic_buffer_resource>()) { add({}); }

NodeId Tree::add(const Node& node) {
  if (size_ == blocks_.size() * kBlock) blocks_.push_back(allocate<Node>(kBlock));
  const auto id = static_cast<NodeId>(size_++);
  std::construct_at(&at(id), node);
  return id;
}

// Items have room for the next power of two of their number.
void Tree::append(Node& node, std::span<const NodeId> items) {
  const std::size_t before = node.items.size();
  const std::size_t count = before + items.size();
  NodeId* data = node.items.data();
  if (before == 0 ? count > 0 : std::bit_ceil(count) > std::bit_ceil(before)) {
    data = allocate<NodeId>(std::bit_ceil(count));
    std::copy(node.items.begin(), node.items.end(), data);
  }
  std::copy(items.begin(), items.end(), data + before);
  node.items = {data, count};
}

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
  std::vector<std::uint8_t> color(tree.size(), kNew);
  std::vector<std::uint8_t> height(tree.size(), 0);
  struct Visit {
    NodeId id;
    std::size_t next;
  };
  std::vector<Visit> path{{tree.root, 0}};
  color[tree.root] = kOpen;
  while (!path.empty()) {
    const NodeId id = path.back().id;
    const std::span<const NodeId> items = tree.at(id).items;
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
    if (tree.at(child).items.empty()) {  // most are
      height[id] = std::max<std::uint8_t>(height[id], 1);
      continue;
    }
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
