#include "launcher/recipe/yaml_text.h"

#include <fmt/format.h>

#include "launcher/recipe/yaml.h"

namespace ptrain::recipe {
namespace {

unsigned byte_at(std::string_view text, std::size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
}

// Bytes of the UTF-8 character at `at`; 0 when there is none (RFC 3629: no overlong forms, no
// surrogates, nothing beyond U+10FFFF).
std::size_t character_size(std::string_view text, std::size_t at) {
  const unsigned lead = byte_at(text, at);
  if (lead < 0x80) return 1;
  const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte_at(text, at + i) & 0xC0) != 0x80) return 0;
  }
  const unsigned second = byte_at(text, at + 1);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool too_large = (lead == 0xED && second > 0x9F) || (lead == 0xF4 && second > 0x8F);
  return overlong || too_large ? 0 : size;
}

bool has_byte_order_mark(std::string_view text) {
  return text.starts_with("\xEF\xBB\xBF") || text.starts_with("\xFF\xFE") ||
         text.starts_with("\xFE\xFF");
}

bool is_refused_control(unsigned byte) {
  return (byte < 0x20 && byte != '\n' && byte != '\r' && byte != '\t') || byte == 0x7F;
}

}  // namespace

std::optional<Violation> violation_of_text(std::string_view text, const std::string& file) {
  Place place{file, 1, 1};
  if (text.size() > kMostYamlBytes) {
    return Violation{place, "", fmt::format("larger than {} bytes", kMostYamlBytes)};
  }
  if (has_byte_order_mark(text)) {
    return Violation{place, "", "begins with a byte order mark; save it as UTF-8 without one"};
  }
  bool in_indentation = true;
  for (std::size_t at = 0; at < text.size();) {
    const unsigned byte = byte_at(text, at);
    const std::size_t size = character_size(text, at);
    if (size == 0) return Violation{place, "", "not UTF-8; save it as UTF-8"};
    const bool is_c1 = byte == 0xC2 && byte_at(text, at + 1) < 0xA0;
    if (is_c1) return Violation{place, "", "control characters are not allowed"};
    if (is_refused_control(byte)) {
      return Violation{place, "",
                       fmt::format("the control character \\x{:02x} is not allowed", byte)};
    }
    if (byte == '\t' && in_indentation) {
      return Violation{place, "", "a tab as indentation; use spaces"};
    }
    in_indentation = byte == '\n' || (in_indentation && byte == ' ');
    place.column = byte == '\n' ? 1 : place.column + 1;
    place.line += byte == '\n' ? 1 : 0;
    at += size;
  }
  return std::nullopt;
}

}  // namespace ptrain::recipe
