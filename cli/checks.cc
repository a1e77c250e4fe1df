#include "cli/checks.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <system_error>

namespace ptrain::cli {

namespace {

// Whether the text is a number from its first letter to its last.
template <class Number>
bool read(const std::string& text, Number& number) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end;
}

}  // namespace

Check whole_number(std::int64_t least, std::int64_t most) {
  return [=](const std::string& text) -> std::string {
    std::int64_t number = 0;
    if (read(text, number) && number >= least && number <= most) return "";
    return fmt::format("'{}' is no whole number from {} to {}", text, least, most);
  };
}

Check positive_number() {
  return [](const std::string& text) -> std::string {
    double number = 0;
    if (read(text, number) && std::isfinite(number) && number > 0) return "";
    return fmt::format("'{}' is no number above 0", text);
  };
}

}  // namespace ptrain::cli
