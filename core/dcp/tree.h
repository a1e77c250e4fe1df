#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ptrain::dcp {

enum class Kind : std::uint8_t {
  kNone,
  kBool,
  kInt,
  kBigInt,
  kFloat,
  kText,
  kBytes,
  kTuple,
  kList,
  kDict,
  kSet,
  kGlobal,
  kObject,
  kPersistentId
};

using NodeId = std::uint32_t;

// One pickled value. Nothing is ever executed: a class is its two names, an object what it would
// have been made from.
struct Node {
  Kind kind = Kind::kNone;
  std::int64_t integer = 0;        // kBool, kInt
  double real = 0;                 // kFloat
  std::string_view text = {};      // kText, kBytes, kBigInt (little-endian two's complement);
                                   // a view of the input
  std::vector<NodeId> items = {};  // tuple, list, set: elements; dict: key, value, key, value ...;
                                   // global: module, name; persistent id: the id; object: class,
                                   // arguments, state, contents (list or dict added later)
};

constexpr NodeId kNoneNode = 0;  // stands for None and for an absent state or contents

// A pickle as a graph without cycles. Nodes are shared as the pickle shares them, so walk with a
// budget.
struct Tree {
  std::vector<Node> nodes;
  NodeId root = kNoneNode;

  const Node& at(NodeId id) const { return nodes[id]; }
  bool is_global(NodeId id, std::string_view module, std::string_view name) const;
  // The name of a class or function without its module; empty when `id` is neither.
  std::string_view global_name(NodeId id) const;
  // The value of a text key of a dict.
  std::optional<NodeId> find(NodeId dict, std::string_view key) const;
};

// Why the graph below the root cannot be walked: a value inside itself, or nesting above
// `max_depth` (at most 200). Empty: it can.
std::string graph_problem(const Tree& tree, int max_depth);

}  // namespace ptrain::dcp
