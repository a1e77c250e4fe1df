#include "engine/data/utf8.h"

#include <cstddef>

namespace ptrain::data {
namespace {

constexpr std::uint32_t kFirstSurrogate = 0xd800, kLastSurrogate = 0xdfff, kLastPoint = 0x10ffff;

// Bytes of the character that begins with `lead`; 0: none does.
std::size_t length_of(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead < 0xe0) return 2;
  if (lead >= 0xe0 && lead < 0xf0) return 3;
  return lead >= 0xf0 && lead < 0xf5 ? 4 : 0;
}

bool is_character(std::string_view bytes) {
  if (bytes.size() == 1) return true;
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  std::uint32_t point = static_cast<unsigned char>(bytes[0]) & (0x7fu >> bytes.size());
  for (const char c : bytes.substr(1)) {
    if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) return false;
    point = point << 6 | (static_cast<unsigned char>(c) & 0x3f);
  }
  return point >= kLeast[bytes.size()] && point <= kLastPoint &&
         (point < kFirstSurrogate || point > kLastSurrogate);
}

}  // namespace

std::int64_t first_not_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = length_of(static_cast<unsigned char>(text[at]));
    if (length == 0 || length > text.size() - at || !is_character(text.substr(at, length)))
      return static_cast<std::int64_t>(at);
    at += length;
  }
  return -1;
}

}  // namespace ptrain::data
