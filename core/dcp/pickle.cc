#include "core/dcp/pickle.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>

#include "core/dcp/opcode.h"

namespace ptrain::dcp {

namespace {

// The stack machine. The first thing wrong is kept in error_, and every later step does nothing.
class Machine {
 public:
  Machine(std::span<const std::byte> bytes, const PickleLimits& limits)
      : input_(reinterpret_cast<const char*>(bytes.data()), bytes.size()), limits_(limits) {
    tree_.nodes.emplace_back();
  }

  Result<Tree> run();

 private:
  void step(Op op);
  bool scalar(Op op);
  bool text(Op op);
  bool container(Op op);
  bool fill(Op op);
  bool memo(Op op);
  bool object(Op op);
  bool stack(Op op);

  bool ok() const { return error_.empty(); }
  void refuse(std::string why) {
    if (ok()) error_ = fmt::format("{} at byte {}", why, position_);
  }

  void refuse_if(std::string why) {
    if (!why.empty()) refuse(std::move(why));
  }

  std::string_view take(std::uint64_t count);
  std::string_view line();
  std::uint64_t unsigned_number(int bytes);
  std::uint64_t line_number();
  void big_integer(std::string_view digits);

  NodeId add(Node node);
  void push(NodeId id) { stack_.push_back(id); }
  void push(Node node) { push(add(std::move(node))); }
  void push_text(Kind kind, std::uint64_t size) { push({.kind = kind, .text = take(size)}); }
  void push_items(Kind kind, std::vector<NodeId> items) {
    push({.kind = kind, .items = std::move(items)});
  }
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  NodeId pop();
  std::vector<NodeId> pop(std::size_t count);
  std::vector<NodeId> pop_to_mark();
  NodeId* top();
  void append(std::vector<NodeId> items, Kind contents);
  void put(std::uint64_t index);
  void get(std::uint64_t index);

  std::string_view input_;
  PickleLimits limits_;
  std::size_t position_ = 0;
  bool stopped_ = false;
  std::string error_;
  Tree tree_;
  std::vector<NodeId> stack_;
  std::vector<std::size_t> marks_;  // heights of the stack
  std::vector<NodeId> memo_;
};

Result<Tree> Machine::run() {
  while (ok() && !stopped_) {
    const std::string_view byte = take(1);
    if (ok()) step(static_cast<Op>(byte[0]));
  }
  if (ok() && (stack_.size() != 1 || !marks_.empty()))
    refuse("the pickle ends with a value missing");
  if (ok()) {
    tree_.root = stack_[0];
    refuse_if(graph_problem(tree_, limits_.depth));
  }
  if (!ok()) return fail(ExitCode::kUnusable, "damaged or hostile pickle: " + error_);
  return std::move(tree_);
}

void Machine::step(Op op) {
  if (scalar(op) || text(op) || container(op) || fill(op) || memo(op) || object(op) || stack(op))
    return;
  refuse(fmt::format("opcode 0x{:02x} is not used by checkpoints", static_cast<unsigned>(op)));
}

bool Machine::scalar(Op op) {
  switch (op) {
    case Op::kNone:
      push(kNoneNode);
      return true;
    case Op::kNewTrue:
      push({.kind = Kind::kBool, .integer = 1});
      return true;
    case Op::kNewFalse:
      push({.kind = Kind::kBool});
      return true;
    case Op::kBinInt1:
      push({.kind = Kind::kInt, .integer = static_cast<std::int64_t>(unsigned_number(1))});
      return true;
    case Op::kBinInt2:
      push({.kind = Kind::kInt, .integer = static_cast<std::int64_t>(unsigned_number(2))});
      return true;
    case Op::kBinInt:
      push({.kind = Kind::kInt, .integer = static_cast<std::int32_t>(unsigned_number(4))});
      return true;
    case Op::kLong1:
      big_integer(take(unsigned_number(1)));
      return true;
    case Op::kLong4:
      big_integer(take(unsigned_number(4)));
      return true;
    case Op::kBinFloat: {
      std::uint64_t bits = 0;  // big-endian, unlike every other number of a pickle
      for (const char c : take(8)) bits = bits << 8 | static_cast<unsigned char>(c);
      push({.kind = Kind::kFloat, .real = std::bit_cast<double>(bits)});
      return true;
    }
    default:
      return false;
  }
}

bool Machine::text(Op op) {
  switch (op) {
    case Op::kShortBinUnicode:
    case Op::kShortBinString:
      push_text(Kind::kText, unsigned_number(1));
      return true;
    case Op::kBinUnicode:
    case Op::kBinString:
      push_text(Kind::kText, unsigned_number(4));
      return true;
    case Op::kBinUnicode8:
      push_text(Kind::kText, unsigned_number(8));
      return true;
    case Op::kShortBinBytes:
      push_text(Kind::kBytes, unsigned_number(1));
      return true;
    case Op::kBinBytes:
      push_text(Kind::kBytes, unsigned_number(4));
      return true;
    case Op::kBinBytes8:
    case Op::kByteArray8:
      push_text(Kind::kBytes, unsigned_number(8));
      return true;
    default:
      return false;
  }
}

bool Machine::container(Op op) {
  switch (op) {
    case Op::kEmptyTuple:
      push_items(Kind::kTuple, {});
      return true;
    case Op::kTuple1:
      push_items(Kind::kTuple, pop(1));
      return true;
    case Op::kTuple2:
      push_items(Kind::kTuple, pop(2));
      return true;
    case Op::kTuple3:
      push_items(Kind::kTuple, pop(3));
      return true;
    case Op::kTuple:
      push_items(Kind::kTuple, pop_to_mark());
      return true;
    case Op::kEmptyList:
      push_items(Kind::kList, {});
      return true;
    case Op::kList:
      push_items(Kind::kList, pop_to_mark());
      return true;
    case Op::kEmptyDict:
      push_items(Kind::kDict, {});
      return true;
    case Op::kEmptySet:
      push_items(Kind::kSet, {});
      return true;
    case Op::kFrozenSet:
      push_items(Kind::kSet, pop_to_mark());
      return true;
    default:
      return false;
  }
}

bool Machine::fill(Op op) {
  switch (op) {
    case Op::kAppend:
      append(pop(1), Kind::kList);
      return true;
    case Op::kAppends:
      append(pop_to_mark(), Kind::kList);
      return true;
    case Op::kAddItems:
      append(pop_to_mark(), Kind::kSet);
      return true;
    case Op::kSetItem:
      append(pop(2), Kind::kDict);
      return true;
    case Op::kSetItems:
      append(pop_to_mark(), Kind::kDict);
      return true;
    default:
      return false;
  }
}

bool Machine::memo(Op op) {
  switch (op) {
    case Op::kMemoize:
      put(memo_.size());
      return true;
    case Op::kBinPut:
      put(unsigned_number(1));
      return true;
    case Op::kLongBinPut:
      put(unsigned_number(4));
      return true;
    case Op::kPut:
      put(line_number());
      return true;
    case Op::kBinGet:
      get(unsigned_number(1));
      return true;
    case Op::kLongBinGet:
      get(unsigned_number(4));
      return true;
    case Op::kGet:
      get(line_number());
      return true;
    default:
      return false;
  }
}

bool Machine::object(Op op) {
  switch (op) {
    case Op::kGlobal: {
      const NodeId module = add({.kind = Kind::kText, .text = line()});
      push_items(Kind::kGlobal, {module, add({.kind = Kind::kText, .text = line()})});
      return true;
    }
    case Op::kStackGlobal:
      push_items(Kind::kGlobal, pop(2));
      return true;
    case Op::kNewObjEx:
      pop();
      [[fallthrough]];  // keyword arguments
    case Op::kReduce:
    case Op::kNewObj: {
      std::vector<NodeId> parts = pop(2);
      parts.resize(4, kNoneNode);
      push_items(Kind::kObject, std::move(parts));
      return true;
    }
    case Op::kBuild: {
      const NodeId state = pop();
      NodeId* target = top();
      if (target == nullptr || tree_.at(*target).kind != Kind::kObject)
        refuse("a state is given to what is not an object");
      else
        tree_.nodes[*target].items[2] = state;
      return true;
    }
    case Op::kBinPersId:
      push_items(Kind::kPersistentId, pop(1));
      return true;
    default:
      return false;
  }
}

bool Machine::stack(Op op) {
  switch (op) {
    case Op::kMark:
      marks_.push_back(stack_.size());
      return true;
    case Op::kPop:
      if (!marks_.empty() && marks_.back() == stack_.size())
        marks_.pop_back();
      else
        pop();
      return true;
    case Op::kPopMark:
      pop_to_mark();
      return true;
    case Op::kDup:
      if (const NodeId* id = top(); id != nullptr) push(NodeId{*id});
      return true;
    case Op::kProto:
      if (unsigned_number(1) > 5) refuse("unknown pickle protocol");
      return true;
    case Op::kFrame:
      take(8);
      return true;
    case Op::kStop:
      stopped_ = true;
      return true;
    default:
      return false;
  }
}

std::string_view Machine::take(std::uint64_t count) {
  if (!ok()) return {};
  if (count > input_.size() - position_) {
    refuse(fmt::format("{} bytes are missing", count - (input_.size() - position_)));
    return {};
  }
  position_ += count;
  return input_.substr(position_ - count, count);
}

std::string_view Machine::line() {
  const std::size_t end = input_.find('\n', position_);
  if (end == std::string_view::npos) refuse("a line does not end");
  if (!ok()) return {};
  const std::string_view text = take(end - position_);
  take(1);
  return text;
}

std::uint64_t Machine::unsigned_number(int bytes) {
  std::uint64_t value = 0;
  int shift = 0;
  for (const char c : take(static_cast<std::uint64_t>(bytes))) {
    value |= std::uint64_t{static_cast<unsigned char>(c)} << shift;
    shift += 8;
  }
  return value;
}

std::uint64_t Machine::line_number() {
  const std::string_view digits = line();
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), value);
  if (error != std::errc() || end != digits.end()) refuse("a memo number is not a number");
  return value;
}

void Machine::big_integer(std::string_view digits) {
  if (digits.size() > 8) {
    push({.kind = Kind::kBigInt, .text = digits});
    return;
  }
  const bool negative = !digits.empty() && (digits.back() & 0x80) != 0;
  std::uint64_t value = negative ? ~std::uint64_t{0} : 0;
  for (std::size_t i = digits.size(); i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(digits[i]);
  push({.kind = Kind::kInt, .integer = static_cast<std::int64_t>(value)});
}

NodeId Machine::add(Node node) {
  if (tree_.nodes.size() >= limits_.nodes) {
    refuse("too many values");
    return kNoneNode;
  }
  tree_.nodes.push_back(std::move(node));
  return static_cast<NodeId>(tree_.nodes.size() - 1);
}

NodeId* Machine::top() {
  if (stack_.size() > floor()) return &stack_.back();
  refuse("a value is missing");
  return nullptr;
}

NodeId Machine::pop() {
  const NodeId* last = top();
  if (last == nullptr) return kNoneNode;
  const NodeId id = *last;
  stack_.pop_back();
  return id;
}

std::vector<NodeId> Machine::pop(std::size_t count) {
  if (stack_.size() < floor() + count) {
    refuse("a value is missing");
    return std::vector<NodeId>(count, kNoneNode);
  }
  std::vector<NodeId> items(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
  stack_.resize(stack_.size() - count);
  return items;
}

std::vector<NodeId> Machine::pop_to_mark() {
  if (marks_.empty()) {
    refuse("a mark is missing");
    return {};
  }
  std::vector<NodeId> items = pop(stack_.size() - marks_.back());
  marks_.pop_back();
  return items;
}

// Adds to the container on top of the stack; what is added to an object becomes its contents.
void Machine::append(std::vector<NodeId> items, Kind contents) {
  const NodeId* target = top();
  if (target == nullptr) return;
  if (contents == Kind::kDict && items.size() % 2 != 0) return refuse("a key has no value");
  NodeId container = *target;
  if (tree_.at(container).kind == Kind::kObject) {
    if (tree_.at(container).items[3] == kNoneNode) {
      const NodeId fresh = add({.kind = contents});
      tree_.nodes[container].items[3] = fresh;
    }
    container = tree_.at(container).items[3];
  }
  Node& node = tree_.nodes[container];
  if (node.kind != contents) return refuse("an item is added to what is not a container");
  node.items.insert(node.items.end(), items.begin(), items.end());
}

// A pickler numbers its memo upwards, one entry an opcode, so a larger number than bytes is
// hostile.
void Machine::put(std::uint64_t index) {
  const NodeId* value = top();
  if (value == nullptr) return;
  if (index >= input_.size()) return refuse("a memo number is out of range");
  if (index >= memo_.size()) memo_.resize(index + 1, kNoneNode);
  memo_[index] = *value;
}

void Machine::get(std::uint64_t index) {
  if (index >= memo_.size()) return refuse("a memo entry is missing");
  push(memo_[index]);
}

}  // namespace

Result<Tree> read_pickle(std::span<const std::byte> bytes, const PickleLimits& limits) {
  return Machine(bytes, limits).run();
}

}  // namespace ptrain::dcp
