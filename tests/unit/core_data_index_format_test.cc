#include "core/data/index_format.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/base/hash.h"

namespace ptrain::data {
namespace {

const IndexTable kTable{{0, 3, 4, 9}, 0x1122334455667788, "0123456789abcdef0123456789abcdef"};

// The bytes with one number changed, and the checksum made to fit again.
std::vector<std::byte> with_u64(std::size_t at, std::uint64_t value) {
  auto bytes = index_to_bytes(kTable);
  std::memcpy(bytes.data() + at, &value, sizeof value);
  const std::uint64_t hash = hash64(std::span(bytes).first(bytes.size() - 8));
  std::memcpy(bytes.data() + bytes.size() - 8, &hash, sizeof hash);
  return bytes;
}

// Places after the comment of index_format.h, written down by hand.
TEST(IndexFormat, BytesLieAsDocumented) {
  const auto bytes = index_to_bytes(kTable);
  ASSERT_EQ(bytes.size(), 72u + 4 * 8 + 8);
  const char start[] = "PTRNIDX\0\1\0\0\0\2\0\0\0\3\0\0\0\0\0\0\0\t\0\0\0\0\0\0";
  EXPECT_EQ(std::memcmp(bytes.data(), start, 32), 0);
  EXPECT_EQ(std::memcmp(bytes.data() + 32, "\x88\x77\x66\x55\x44\x33\x22\x11", 8), 0);
  EXPECT_EQ(std::memcmp(bytes.data() + 40, "0123456789abcdef0123456789abcdef", 32), 0);
  EXPECT_EQ(std::memcmp(bytes.data() + 80, "\3\0\0\0\0\0\0\0", 8), 0);
  EXPECT_EQ(index_from_bytes(bytes), kTable);
}

TEST(IndexFormat, EveryCutAndEveryFlippedBitIsRefused) {
  const auto whole = index_to_bytes(kTable);
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(index_from_bytes(std::span(whole).first(size))) << size;
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    auto bytes = whole;
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(index_from_bytes(bytes)) << bit;
  }
}

TEST(IndexFormat, HostileNumbersWithAGoodChecksumAreRefused) {
  EXPECT_TRUE(index_from_bytes(with_u64(72, 0)));                        // unchanged
  for (const std::uint64_t count : {0ull, 2ull, 4ull, ~0ull, 1ull << 61, ~0ull - 1})
    EXPECT_FALSE(index_from_bytes(with_u64(16, count))) << count;       // documents
  EXPECT_FALSE(index_from_bytes(with_u64(24, 10)));                      // tokens
  EXPECT_FALSE(index_from_bytes(with_u64(72, 1)));                       // first offset
  EXPECT_FALSE(index_from_bytes(with_u64(80, 4)));                       // an empty document
  EXPECT_FALSE(index_from_bytes(with_u64(88, 100)));                     // falling
  EXPECT_FALSE(index_from_bytes(with_u64(88, ~0ull)));                   // negative
  EXPECT_FALSE(index_from_bytes(with_u64(8, 0x200000002)));              // version 2
  EXPECT_FALSE(index_from_bytes(with_u64(8, 0x400000001)));              // four bytes a token
  EXPECT_FALSE(index_from_bytes(with_u64(40, 0x2f2e2e2f2e2e2f2e)));      // ../../.. as a hash
}

}  // namespace
}  // namespace ptrain::data
