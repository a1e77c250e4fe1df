#include "core/dcp/pickle_writer.h"

#include <bit>
#include <limits>

namespace ptrain::dcp {

PickleWriter::PickleWriter() {
  op(Op::kProto);
  number(2, 1);
}

void PickleWriter::op(Op op) { out_.push_back(static_cast<std::byte>(op)); }

void PickleWriter::number(std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out_.push_back(static_cast<std::byte>(value >> (8 * i) & 0xff));
}

void PickleWriter::raw(std::string_view text) {
  for (const char c : text) out_.push_back(static_cast<std::byte>(c));
}

void PickleWriter::integer(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  if (value >= 0 && value < 256) {
    op(Op::kBinInt1);
    number(bits, 1);
  } else if (value >= std::numeric_limits<std::int32_t>::min() &&
             value <= std::numeric_limits<std::int32_t>::max()) {
    op(Op::kBinInt);
    number(bits, 4);
  } else {
    op(Op::kLong1);
    number(8, 1);
    number(bits, 8);
  }
}

void PickleWriter::big_integer(std::uint64_t value) {
  if (value <= std::uint64_t{std::numeric_limits<std::int64_t>::max()})
    return integer(static_cast<std::int64_t>(value));
  op(Op::kLong1);
  number(9, 1);  // the ninth byte is the sign
  number(value, 8);
  number(0, 1);
}

void PickleWriter::real(double value) {
  op(Op::kBinFloat);
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (int i = 7; i >= 0; --i) number(bits >> (8 * i), 1);
}

bool PickleWriter::recall(const std::string& what) {
  const auto found = memo_.find(what);
  if (found == memo_.end()) return false;
  op(found->second < 256 ? Op::kBinGet : Op::kLongBinGet);
  number(found->second, found->second < 256 ? 1 : 4);
  return true;
}

void PickleWriter::remember(std::string what) {
  const auto index = static_cast<std::uint32_t>(memo_.size());
  op(index < 256 ? Op::kBinPut : Op::kLongBinPut);
  number(index, index < 256 ? 1 : 4);
  memo_.emplace(std::move(what), index);
}

void PickleWriter::text(std::string_view text) {
  std::string key(1, 't');
  key.append(text);
  if (recall(key)) return;
  op(Op::kBinUnicode);
  number(text.size(), 4);
  raw(text);
  remember(std::move(key));
}

void PickleWriter::global(std::string_view module, std::string_view name) {
  std::string key(1, 'g');
  key.append(module).append("\n").append(name);
  if (recall(key)) return;
  op(Op::kGlobal);
  raw(std::string_view(key).substr(1));
  raw("\n");
  remember(std::move(key));
}

void PickleWriter::integers(const std::vector<std::int64_t>& values) {
  op(Op::kMark);
  for (const std::int64_t value : values) integer(value);
  op(Op::kTuple);
}

std::vector<std::byte> PickleWriter::finish() {
  op(Op::kStop);
  return std::move(out_);
}

}  // namespace ptrain::dcp
