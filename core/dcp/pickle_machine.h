#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/dcp/pickle.h"
#include "core/dcp/pickle_input.h"
#include "core/dcp/tree.h"

namespace ptrain::dcp {

// The stack machine that a pickle is a program of: a stack with marks, a memo, and the tree that
// grows. What is wrong is told to the input.
class PickleMachine {
 public:
  PickleMachine(std::span<const std::byte> bytes, const PickleLimits& limits)
      : input(bytes), limits_(limits) {}

  PickleInput input;

  void push(NodeId id) { stack_.push_back(id); }
  void push(const Node& node) { push(add(node)); }
  void push_text(Kind kind, std::uint64_t size) { push({.kind = kind, .text = input.take(size)}); }
  void push_integer(std::int64_t value) { push({.kind = Kind::kInt, .integer = value}); }
  void push_small_integer(std::uint64_t value) {
    push_shared(small_integers_[value % 256],
                {.kind = Kind::kInt, .integer = static_cast<std::int64_t>(value)});
  }
  void push_empty_tuple() { push_shared(empty_tuple_, {.kind = Kind::kTuple}); }
  // Little-endian two's complement of any length.
  void push_big_integer(std::string_view digits);
  void push_real(std::string_view big_endian);
  // A class or function from its two names.
  void push_global(std::string_view module, std::string_view name);
  // An object from the two values on top: class, arguments.
  void push_object();

  void drop(std::size_t count = 1);
  void mark() { marks_.push_back(stack_.size()); }
  // How many values lie above the last mark, which goes.
  std::size_t unmark();
  // Drops a value or, right above a mark, the mark.
  void drop_value_or_mark();
  void duplicate();

  // The `count` values on top become the items of a new one.
  void collect(Kind kind, std::size_t count);
  // They go into the container below them; what is added to an object becomes its contents.
  void append(Kind contents, std::size_t count);
  // The value on top becomes the state of the object below it.
  void build();

  void put(std::uint64_t index);
  void put_next() { put(memo_.size()); }
  void get(std::uint64_t index);

  // The one value that must be left.
  Result<Tree> finish();

 private:
  NodeId add(const Node& node);
  // One node for all that are equal: half of a `.metadata` are offsets 0 and empty arguments.
  void push_shared(NodeId& id, const Node& node) {
    if (id == kNoneNode) id = add(node);
    push(id);
  }
  NodeId* top();
  // The uppermost values; nothing when fewer lie above the mark.
  std::span<const NodeId> last(std::size_t count);
  void remove(std::size_t count) { stack_.resize(stack_.size() - count); }
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  NodeId contents_of(NodeId container, Kind contents);

  PickleLimits limits_;
  Tree tree_;
  std::vector<NodeId> stack_;
  std::vector<std::size_t> marks_;  // heights of the stack
  std::vector<NodeId> memo_;
  std::array<NodeId, 256> small_integers_{};
  NodeId empty_tuple_ = kNoneNode;
};

}  // namespace ptrain::dcp
