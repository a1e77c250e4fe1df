#include "core/dcp/pickle_input.h"

#include <fmt/format.h>

#include <charconv>

namespace ptrain::dcp {

void PickleInput::refuse(std::string_view why) {
  if (ok()) error_ = fmt::format("{} at byte {}", why, position_);
}

std::string_view PickleInput::missing(std::uint64_t count) {
  refuse(fmt::format("{} bytes are missing", count - (bytes_.size() - position_)));
  return {};
}

std::string_view PickleInput::line() {
  const std::size_t end = bytes_.find('\n', position_);
  if (end == std::string_view::npos) {
    refuse("a line does not end");
    return {};
  }
  const std::string_view text = take(end - position_);
  take(1);
  return text;
}

std::uint64_t PickleInput::number(int bytes) {
  std::uint64_t value = 0;
  int shift = 0;
  for (const char c : take(static_cast<std::uint64_t>(bytes))) {
    value |= std::uint64_t{static_cast<unsigned char>(c)} << shift;
    shift += 8;
  }
  return value;
}

std::uint64_t PickleInput::line_number() {
  const std::string_view digits = line();
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), value);
  if (error != std::errc() || end != digits.end()) refuse("a memo number is not a number");
  return value;
}

}  // namespace ptrain::dcp
