#include <array>

#include "core/dcp/archive.h"

namespace ptrain::dcp {

namespace {

using Table = std::array<std::array<std::uint32_t, 256>, 8>;

// tables[k][b]: the checksum's change by byte b followed by k zero bytes, so eight bytes go in one
// step.
constexpr Table make_tables() {
  Table tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? 0xedb88320u : 0);
    tables[0][byte] = value;
  }
  for (std::size_t k = 1; k < 8; ++k)
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t value = tables[k - 1][byte];
      tables[k][byte] = value >> 8 ^ tables[0][value & 0xff];
    }
  return tables;
}

constexpr Table kTables = make_tables();

}  // namespace

std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t before) {
  std::uint32_t crc = ~before;
  const auto at = [&](std::size_t i) { return std::to_integer<std::uint32_t>(bytes[i]); };
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    const std::uint32_t low = crc ^ (at(i) | at(i + 1) << 8 | at(i + 2) << 16 | at(i + 3) << 24);
    crc = kTables[7][low & 0xff] ^ kTables[6][low >> 8 & 0xff] ^ kTables[5][low >> 16 & 0xff] ^
          kTables[4][low >> 24] ^ kTables[3][at(i + 4)] ^ kTables[2][at(i + 5)] ^
          kTables[1][at(i + 6)] ^ kTables[0][at(i + 7)];
  }
  for (; i < bytes.size(); ++i) crc = crc >> 8 ^ kTables[0][(crc ^ at(i)) & 0xff];
  return ~crc;
}

}  // namespace ptrain::dcp
