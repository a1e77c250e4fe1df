#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/dcp/opcode.h"

namespace ptrain::dcp {

// Emits one pickle of protocol 2, opcode by opcode: all that stock PyTorch's restricted reader
// knows. Repeated classes and texts are written once and then taken from the memo.
class PickleWriter {
 public:
  PickleWriter();

  void op(Op op);
  void boolean(bool value) { op(value ? Op::kNewTrue : Op::kNewFalse); }
  void integer(std::int64_t value);
  void big_integer(std::uint64_t value);
  void real(double value);
  void text(std::string_view text);
  void global(std::string_view module, std::string_view name);
  // torch.Size and other tuples of integers.
  void integers(const std::vector<std::int64_t>& values);

  std::vector<std::byte> finish();

 private:
  void number(std::uint64_t value, int bytes);
  void raw(std::string_view text);
  bool recall(const std::string& what);
  void remember(std::string what);

  std::vector<std::byte> out_;
  std::map<std::string, std::uint32_t> memo_;
};

}  // namespace ptrain::dcp
