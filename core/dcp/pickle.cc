#include "core/dcp/pickle.h"

#include <fmt/format.h>

#include <array>

#include "core/dcp/opcode.h"
#include "core/dcp/pickle_machine.h"

namespace ptrain::dcp {

namespace {

using Machine = PickleMachine;

// What each opcode does; one that is in no list is refused.
struct Rule {
  Op op;
  void (*run)(Machine&);
};

constexpr Rule kScalars[] = {
    {Op::kNone, [](Machine& m) { m.push(kNoneNode); }},
    {Op::kNewTrue, [](Machine& m) { m.push({.kind = Kind::kBool, .integer = 1}); }},
    {Op::kNewFalse, [](Machine& m) { m.push({.kind = Kind::kBool}); }},
    {Op::kBinInt1, [](Machine& m) { m.push_small_integer(m.input.number(1)); }},
    {Op::kBinInt2,
     [](Machine& m) { m.push_integer(static_cast<std::int64_t>(m.input.number(2))); }},
    {Op::kBinInt, [](Machine& m) { m.push_integer(static_cast<std::int32_t>(m.input.number(4))); }},
    {Op::kLong1, [](Machine& m) { m.push_big_integer(m.input.take(m.input.number(1))); }},
    {Op::kLong4, [](Machine& m) { m.push_big_integer(m.input.take(m.input.number(4))); }},
    {Op::kBinFloat, [](Machine& m) { m.push_real(m.input.take(8)); }},
};

constexpr Rule kTexts[] = {
    {Op::kShortBinUnicode, [](Machine& m) { m.push_text(Kind::kText, m.input.number(1)); }},
    {Op::kShortBinString, [](Machine& m) { m.push_text(Kind::kText, m.input.number(1)); }},
    {Op::kBinUnicode, [](Machine& m) { m.push_text(Kind::kText, m.input.number(4)); }},
    {Op::kBinString, [](Machine& m) { m.push_text(Kind::kText, m.input.number(4)); }},
    {Op::kBinUnicode8, [](Machine& m) { m.push_text(Kind::kText, m.input.number(8)); }},
    {Op::kShortBinBytes, [](Machine& m) { m.push_text(Kind::kBytes, m.input.number(1)); }},
    {Op::kBinBytes, [](Machine& m) { m.push_text(Kind::kBytes, m.input.number(4)); }},
    {Op::kBinBytes8, [](Machine& m) { m.push_text(Kind::kBytes, m.input.number(8)); }},
    {Op::kByteArray8, [](Machine& m) { m.push_text(Kind::kBytes, m.input.number(8)); }},
};

constexpr Rule kContainers[] = {
    {Op::kEmptyTuple, [](Machine& m) { m.push_empty_tuple(); }},
    {Op::kTuple1, [](Machine& m) { m.collect(Kind::kTuple, 1); }},
    {Op::kTuple2, [](Machine& m) { m.collect(Kind::kTuple, 2); }},
    {Op::kTuple3, [](Machine& m) { m.collect(Kind::kTuple, 3); }},
    {Op::kTuple, [](Machine& m) { m.collect(Kind::kTuple, m.unmark()); }},
    {Op::kEmptyList, [](Machine& m) { m.collect(Kind::kList, 0); }},
    {Op::kList, [](Machine& m) { m.collect(Kind::kList, m.unmark()); }},
    {Op::kEmptyDict, [](Machine& m) { m.collect(Kind::kDict, 0); }},
    {Op::kEmptySet, [](Machine& m) { m.collect(Kind::kSet, 0); }},
    {Op::kFrozenSet, [](Machine& m) { m.collect(Kind::kSet, m.unmark()); }},
    {Op::kAppend, [](Machine& m) { m.append(Kind::kList, 1); }},
    {Op::kAppends, [](Machine& m) { m.append(Kind::kList, m.unmark()); }},
    {Op::kAddItems, [](Machine& m) { m.append(Kind::kSet, m.unmark()); }},
    {Op::kSetItem, [](Machine& m) { m.append(Kind::kDict, 2); }},
    {Op::kSetItems, [](Machine& m) { m.append(Kind::kDict, m.unmark()); }},
};

constexpr Rule kMemo[] = {
    {Op::kMemoize, [](Machine& m) { m.put_next(); }},
    {Op::kBinPut, [](Machine& m) { m.put(m.input.number(1)); }},
    {Op::kLongBinPut, [](Machine& m) { m.put(m.input.number(4)); }},
    {Op::kPut, [](Machine& m) { m.put(m.input.line_number()); }},
    {Op::kBinGet, [](Machine& m) { m.get(m.input.number(1)); }},
    {Op::kLongBinGet, [](Machine& m) { m.get(m.input.number(4)); }},
    {Op::kGet, [](Machine& m) { m.get(m.input.line_number()); }},
};

void global_by_lines(Machine& m) {
  const std::string_view module = m.input.line();
  m.push_global(module, m.input.line());
}

void object_with_keywords(Machine& m) {
  m.drop();
  m.push_object();
}

constexpr Rule kObjects[] = {
    {Op::kGlobal, global_by_lines},
    {Op::kStackGlobal, [](Machine& m) { m.collect(Kind::kGlobal, 2); }},
    {Op::kNewObjEx, object_with_keywords},
    {Op::kNewObj, [](Machine& m) { m.push_object(); }},
    {Op::kReduce, [](Machine& m) { m.push_object(); }},
    {Op::kBuild, [](Machine& m) { m.build(); }},
    {Op::kBinPersId, [](Machine& m) { m.collect(Kind::kPersistentId, 1); }},
};

void protocol(Machine& m) {
  if (m.input.number(1) > 5) m.input.refuse("unknown pickle protocol");
}

constexpr Rule kStack[] = {
    {Op::kMark, [](Machine& m) { m.mark(); }},
    {Op::kPop, [](Machine& m) { m.drop_value_or_mark(); }},
    {Op::kPopMark, [](Machine& m) { m.drop(m.unmark()); }},
    {Op::kDup, [](Machine& m) { m.duplicate(); }},
    {Op::kProto, protocol},
    {Op::kFrame, [](Machine& m) { m.input.take(8); }},
};

using Table = std::array<void (*)(Machine&), 256>;

constexpr Table make_table() {
  Table table{};
  const auto add = [&](const auto& rules) {
    for (const Rule& rule : rules) table[static_cast<std::size_t>(rule.op)] = rule.run;
  };
  add(kScalars);
  add(kTexts);
  add(kContainers);
  add(kMemo);
  add(kObjects);
  add(kStack);
  return table;
}

constexpr Table kTable = make_table();

}  // namespace

Result<Tree> read_pickle(std::span<const std::byte> bytes, const PickleLimits& limits) {
  Machine machine(bytes, limits);
  while (machine.input.ok()) {
    const auto op = static_cast<std::uint8_t>(machine.input.number(1));
    if (op == static_cast<std::uint8_t>(Op::kStop) || !machine.input.ok()) break;
    if (kTable[op] != nullptr)
      kTable[op](machine);
    else
      machine.input.refuse(fmt::format("opcode 0x{:02x} is not used by checkpoints", op));
  }
  return machine.finish();
}

}  // namespace ptrain::dcp
