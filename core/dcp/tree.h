#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
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
  std::int64_t integer = 0;      // kBool, kInt; kFloat: the bits of real()
  std::string_view text = {};    // kText, kBytes, kBigInt (little-endian two's complement);
                                 // a view of the input
  std::span<NodeId> items = {};  // tuple, list, set: elements; dict: key, value, key, value ...;
                                 // global: module, name; persistent id: the id; object: class,
                                 // arguments, state, contents (list or dict added later)

  double real() const { return std::bit_cast<double>(integer); }
};

constexpr NodeId kNoneNode = 0;  // stands for None and for an absent state or contents

// A pickle as a graph without cycles. Nodes are shared as the pickle shares them, so walk with a
// budget. Nodes and items lie in blocks that never move: a checkpoint of many ranks has tens of
// millions.
class Tree {
 public:
  Tree();

  NodeId root = kNoneNode;

  std::size_t size() const { return size_; }
  const Node& at(NodeId id) const { return blocks_[id / kBlock][id % kBlock]; }
  Node& at(NodeId id) { return blocks_[id / kBlock][id % kBlock]; }
  bool is_global(NodeId id, std::string_view module, std::string_view name) const;
  // The name of a class or function without its module; empty when `id` is neither.
  std::string_view global_name(NodeId id) const;
  // The value of a text key of a dict.
  std::optional<NodeId> find(NodeId dict, std::string_view key) const;

  NodeId add(const Node& node);
  // Adds to the items of a node, of this tree or not yet.
  void append(Node& node, std::span<const NodeId> items);

 private:
  static constexpr std::size_t kBlock = 256;

  template <class T>
  T* allocate(std::size_t count) {
    return std::pmr::polymorphic_allocator<T>(memory_.get()).allocate(count);
  }

  std::unique_ptr<std::pmr::monotonic_buffer_resource> memory_;
  std::vector<Node*> blocks_;
  std::size_t size_ = 0;
};

// Why the graph below the root cannot be walked: a value inside itself, or nesting above
// `max_depth` (at most 200). Empty: it can.
std::string graph_problem(const Tree& tree, int max_depth);

}  // namespace ptrain::dcp
