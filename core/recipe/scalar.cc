#include "core/recipe/scalar.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/recipe/spelling.h"

namespace ptrain::recipe {
namespace {

using Parsed = tl::expected<Value, std::string>;
using Reason = std::optional<std::string>;

constexpr std::string_view kDigits = "0123456789";

std::string_view kind_of(const Field& field) {
  return field.type == FieldType::kInteger ? "a whole number" : "a number";
}

// "a whole number of tokens (allowed: 1 to 64)"
std::string wanted(const Field& field) {
  const std::string unit = field.unit.empty() ? "" : " of " + field.unit;
  return fmt::format("{}{} (allowed: {})", kind_of(field), unit, allowed_values(field));
}

// Without its sign; digits before the point, after it, and after the e; what follows.
struct Parts {
  std::string_view whole, fraction, exponent, rest;
  bool has_point = false, has_exponent = false;
};

std::string_view take_digits(std::string_view& text) {
  const std::string_view digits = text.substr(0, text.find_first_not_of(kDigits));
  text.remove_prefix(digits.size());
  return digits;
}

Parts split(std::string_view text) {
  Parts parts;
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  parts.whole = take_digits(text);
  if (text.starts_with('.')) {
    parts.has_point = true;
    text.remove_prefix(1);
    parts.fraction = take_digits(text);
  }
  if (text.starts_with('e') || text.starts_with('E')) {
    std::string_view after = text.substr(1);
    if (after.starts_with('+') || after.starts_with('-')) after.remove_prefix(1);
    parts.exponent = take_digits(after);
    parts.has_exponent = !parts.exponent.empty();
    if (parts.has_exponent) text = after;
  }
  parts.rest = text;
  return parts;
}

bool one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  std::string low(word);
  for (char& c : low) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return std::find(words.begin(), words.end(), low) != words.end();
}

bool is_yaml_boolean(std::string_view text) {
  return one_of(text, {"yes", "no", "on", "off", "true", "false", "y", "n"});
}

// Why a text that is not a word is no plain decimal number; nothing when it is one.
Reason not_decimal(const Field& field, std::string_view text, const Parts& parts) {
  const std::string_view whole = parts.whole;
  if (one_of(text, {".nan", "nan", ".inf", "-.inf", "+.inf", "inf", "-inf", "+inf", "infinity"})) {
    return fmt::format("'{}' is not finite; give {}", shown(text), wanted(field));
  }
  if (whole == "0" && one_of(parts.rest.substr(0, 1), {"x", "o", "b"})) {
    return fmt::format("'{}' is not decimal; give {}", shown(text), wanted(field));
  }
  if (whole.empty() && parts.fraction.empty()) {
    return fmt::format("'{}' is not {}; allowed: {}", shown(text), kind_of(field),
                       allowed_values(field));
  }
  if (parts.rest.starts_with(':')) {
    return fmt::format("'{}' is ambiguous: YAML 1.1 reads it in base 60; give {}", shown(text),
                       wanted(field));
  }
  if (parts.rest.starts_with('_') || parts.rest.starts_with(',')) {
    return fmt::format("'{}' has grouped digits; give {}", shown(text), wanted(field));
  }
  if (!parts.rest.empty()) {
    return fmt::format("'{}' has the suffix '{}'; give {}, without a suffix", shown(text),
                       shown(parts.rest), wanted(field));
  }
  if (whole.size() > 1 && whole.starts_with('0')) {
    const std::size_t sign = text.find_first_of(kDigits);
    const std::size_t first = sign + std::min(whole.find_first_not_of('0'), whole.size() - 1);
    return fmt::format("'{}' is ambiguous: YAML 1.1 reads a leading 0 as octal; write {}",
                       shown(text), shown(text.substr(first)));
  }
  return std::nullopt;
}

bool in_range(const Range& range, double value) {
  const bool above = range.open_least ? value > range.least : value >= range.least;
  const bool below = range.open_most ? value < range.most : value <= range.most;
  return above && below;
}

tl::unexpected<std::string> out_of_range(const Field& field, std::string_view text) {
  const std::string unit = field.unit.empty() ? "" : " " + field.unit;
  return tl::unexpected(
      fmt::format("{} is out of range; allowed: {}{}", shown(text), allowed_values(field), unit));
}

std::string_view without_plus(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  return text;
}

Parsed parse_integer(const Field& field, std::string_view text, const Parts& parts) {
  if (parts.has_point || parts.has_exponent) {
    return tl::unexpected(fmt::format("'{}' is a float; give {}, all digits written out",
                                      shown(text), wanted(field)));
  }
  const std::string_view digits = without_plus(text);
  std::int64_t value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (result.ec != std::errc() || !in_range(field.range, static_cast<double>(value))) {
    return out_of_range(field, text);
  }
  return Value(value);
}

Parsed parse_float(const Field& field, std::string_view text) {
  const std::string_view digits = without_plus(text);
  double value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (result.ec == std::errc::result_out_of_range) {
    return tl::unexpected(
        fmt::format("'{}' lies outside of what a 64-bit float can hold; allowed: {}", shown(text),
                    allowed_values(field)));
  }
  if (result.ec != std::errc() || !in_range(field.range, value)) return out_of_range(field, text);
  return Value(value);
}

Parsed zero_of(const Field& field) {
  return field.type == FieldType::kInteger ? Value(std::int64_t{0}) : Value(0.0);
}

Parsed parse_number(const Field& field, const Node& scalar) {
  const std::string& text = scalar.text;
  if (!field.zero_word.empty() && text == field.zero_word) return zero_of(field);
  if (!field.absent_word.empty() && text == field.absent_word) return Value(text);
  const Parts parts = split(text);
  if (const Reason reason = not_decimal(field, text, parts)) return tl::unexpected(*reason);
  if (scalar.quoted) {
    return tl::unexpected(
        fmt::format("the number is quoted, which makes it a text; write {}", shown(text)));
  }
  return field.type == FieldType::kInteger ? parse_integer(field, text, parts)
                                           : parse_float(field, text);
}

Parsed parse_boolean(const Node& scalar) {
  const std::string& text = scalar.text;
  if (scalar.quoted && (text == "true" || text == "false")) {
    return tl::unexpected(
        fmt::format("the value is quoted, which makes it a text; write {}", text));
  }
  if (text == "true" || text == "false") return Value(text == "true");
  if (is_yaml_boolean(text)) {
    const bool means_true = one_of(text, {"yes", "on", "true", "y"});
    return tl::unexpected(fmt::format("'{}' is not a boolean here; write {}", shown(text),
                                      means_true ? "true" : "false"));
  }
  return tl::unexpected(fmt::format("'{}' is not a boolean; allowed: true, false", shown(text)));
}

Parsed parse_choice(const Field& field, const std::string& text) {
  const auto listed = [&](const std::vector<std::string>& words) {
    return std::find(words.begin(), words.end(), text) != words.end();
  };
  if (listed(field.choices)) return Value(text);
  const std::string allowed = allowed_values(field);
  if (listed(field.unavailable)) {
    return tl::unexpected(
        fmt::format("'{}' is not available in this version; allowed: {}", text, allowed));
  }
  const std::string near = nearest(text, field.choices);
  return tl::unexpected(fmt::format("unknown value '{}'; allowed: {}{}", shown(text), allowed,
                                    near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
}

Parsed parse_text(const Field& field, const std::string& text) {
  constexpr std::size_t kLongest = 4096;  // what a path may have
  const bool has_control = std::any_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
  });
  if (has_control)
    return tl::unexpected<std::string>("line breaks and control characters are not allowed");
  if (text.size() > kLongest) return tl::unexpected(fmt::format("longer than {} bytes", kLongest));
  if (field.required && text.empty()) return tl::unexpected<std::string>("may not be empty");
  return Value(text);
}

}  // namespace

Parsed parse_value(const Field& field, const Node& scalar) {
  switch (field.type) {
    case FieldType::kBoolean:
      return parse_boolean(scalar);
    case FieldType::kInteger:
    case FieldType::kNumber:
      return parse_number(field, scalar);
    case FieldType::kChoice:
      return parse_choice(field, scalar.text);
    case FieldType::kText:
      return parse_text(field, scalar.text);
  }
  return tl::unexpected<std::string>("has no type");
}

}  // namespace ptrain::recipe
