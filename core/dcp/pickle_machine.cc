#include "core/dcp/pickle_machine.h"

namespace ptrain::dcp {

NodeId PickleMachine::add(const Node& node) {
  if (tree_.size() >= limits_.nodes) {
    input.refuse("too many values");
    return kNoneNode;
  }
  return tree_.add(node);
}

void PickleMachine::push_big_integer(std::string_view digits) {
  if (digits.size() > 8) return push({.kind = Kind::kBigInt, .text = digits});
  const bool negative = !digits.empty() && (digits.back() & 0x80) != 0;
  std::uint64_t value = negative ? ~std::uint64_t{0} : 0;
  for (std::size_t i = digits.size(); i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(digits[i]);
  push_integer(static_cast<std::int64_t>(value));
}

void PickleMachine::push_real(std::string_view big_endian) {
  std::uint64_t bits = 0;
  for (const char c : big_endian) bits = bits << 8 | static_cast<unsigned char>(c);
  push({.kind = Kind::kFloat, .integer = static_cast<std::int64_t>(bits)});
}

void PickleMachine::push_global(std::string_view module, std::string_view name) {
  push({.kind = Kind::kText, .text = module});
  push({.kind = Kind::kText, .text = name});
  collect(Kind::kGlobal, 2);
}

void PickleMachine::push_object() {
  if (last(2).empty()) return;
  push(kNoneNode);  // state
  push(kNoneNode);  // contents
  collect(Kind::kObject, 4);
}

NodeId* PickleMachine::top() {
  if (stack_.size() > floor()) return &stack_.back();
  input.refuse("a value is missing");
  return nullptr;
}

std::span<const NodeId> PickleMachine::last(std::size_t count) {
  if (stack_.size() >= floor() + count) return std::span(stack_).last(count);
  input.refuse("a value is missing");
  return {};
}

void PickleMachine::drop(std::size_t count) { remove(last(count).size()); }

std::size_t PickleMachine::unmark() {
  if (marks_.empty()) {
    input.refuse("a mark is missing");
    return 0;
  }
  const std::size_t count = stack_.size() - marks_.back();
  marks_.pop_back();
  return count;
}

void PickleMachine::drop_value_or_mark() {
  if (!marks_.empty() && marks_.back() == stack_.size())
    marks_.pop_back();
  else
    drop();
}

void PickleMachine::duplicate() {
  if (const NodeId* id = top(); id != nullptr) push(NodeId{*id});
}

void PickleMachine::collect(Kind kind, std::size_t count) {
  Node node{.kind = kind};
  const auto items = last(count);
  tree_.append(node, items);
  remove(items.size());
  push(node);
}

void PickleMachine::append(Kind contents, std::size_t count) {
  const auto values = last(count + 1);
  if (values.empty()) return;
  if (contents == Kind::kDict && count % 2 != 0) return input.refuse("a key has no value");
  Node& node = tree_.at(contents_of(values[0], contents));
  if (node.kind != contents) return input.refuse("an item is added to what is not a container");
  tree_.append(node, values.subspan(1));
  remove(count);
}

NodeId PickleMachine::contents_of(NodeId container, Kind contents) {
  const std::span<NodeId> items = tree_.at(container).items;
  if (tree_.at(container).kind != Kind::kObject) return container;
  if (items[3] == kNoneNode) items[3] = add({.kind = contents});
  return items[3];
}

void PickleMachine::build() {
  const auto values = last(2);
  if (values.empty() || tree_.at(values[0]).kind != Kind::kObject)
    return input.refuse("a state is given to what is not an object");
  tree_.at(values[0]).items[2] = values[1];
  remove(1);
}

// A pickler numbers its memo upwards, one entry an opcode, so a larger number than bytes is
// hostile.
void PickleMachine::put(std::uint64_t index) {
  const NodeId* value = top();
  if (value == nullptr) return;
  if (index >= input.size()) return input.refuse("a memo number is out of range");
  if (index >= memo_.size()) memo_.resize(index + 1, kNoneNode);
  memo_[index] = *value;
}

void PickleMachine::get(std::uint64_t index) {
  if (index >= memo_.size()) return input.refuse("a memo entry is missing");
  push(memo_[index]);
}

Result<Tree> PickleMachine::finish() {
  if (stack_.size() != 1 || !marks_.empty()) input.refuse("the pickle ends with a value missing");
  if (input.ok()) {
    tree_.root = stack_[0];
    const std::string problem = graph_problem(tree_, limits_.depth);
    if (!problem.empty()) input.refuse(problem);
  }
  if (!input.ok()) return fail(ExitCode::kUnusable, "damaged or hostile pickle: " + input.error());
  return std::move(tree_);
}

}  // namespace ptrain::dcp
