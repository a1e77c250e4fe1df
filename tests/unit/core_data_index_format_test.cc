#include <gtest/gtest.h>

#include <cstring>

#include "core/base/hash.h"
#include "core/data/index_format.h"

namespace ptrain::data {
namespace {

const IndexTable kTable{2,
                        258,
                        257,
                        {0, 3, 4, 9},
                        {0, 2, 3},
                        {{1, 3}, {5, 6}},
                        0x1122334455667788,
                        "0123456789abcdef0123456789abcdef"};

// Where the parts of kTable lie, after the comment of index_format.h.
constexpr std::size_t kBegin = 96, kSources = kBegin + 4 * 8, kSilent = kSources + 3 * 8;

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
  ASSERT_EQ(bytes.size(), kSilent + 4 * 8 + 8);
  const char start[] = "PTRNIDX\0\2\0\0\0\2\0\0\0\3\0\0\0\0\0\0\0\t\0\0\0\0\0\0";
  EXPECT_EQ(std::memcmp(bytes.data(), start, 32), 0);
  EXPECT_EQ(std::memcmp(bytes.data() + 32, "\x88\x77\x66\x55\x44\x33\x22\x11", 8), 0);
  EXPECT_EQ(std::memcmp(bytes.data() + 40, "0123456789abcdef0123456789abcdef", 32), 0);
  EXPECT_EQ(std::memcmp(bytes.data() + 72, "\2\1\0\0\1\1\0\0\2\0\0\0\0\0\0\0\2", 17), 0);
  EXPECT_EQ(std::memcmp(bytes.data() + kBegin + 8, "\3\0\0\0\0\0\0\0", 8), 0);
  EXPECT_EQ(std::memcmp(bytes.data() + kSources + 8, "\2\0\0\0\0\0\0\0", 8), 0);
  EXPECT_EQ(std::memcmp(bytes.data() + kSilent + 8, "\3\0\0\0\0\0\0\0\5", 9), 0);
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
  EXPECT_TRUE(index_from_bytes(with_u64(kBegin, 0)));  // unchanged
  for (const std::uint64_t count : {0ull, 1ull, 4ull, ~0ull, 1ull << 61, 1ull << 63, ~0ull - 1}) {
    EXPECT_FALSE(index_from_bytes(with_u64(16, count))) << count;  // documents
    EXPECT_FALSE(index_from_bytes(with_u64(80, count))) << count;  // sources
    EXPECT_FALSE(index_from_bytes(with_u64(88, count))) << count;  // silent ranges
  }
  EXPECT_FALSE(index_from_bytes(with_u64(24, 10)));                  // tokens
  EXPECT_FALSE(index_from_bytes(with_u64(kBegin, 1)));               // first offset
  EXPECT_FALSE(index_from_bytes(with_u64(kBegin + 8, 4)));           // an empty document
  EXPECT_FALSE(index_from_bytes(with_u64(kBegin + 16, 100)));        // falling
  EXPECT_FALSE(index_from_bytes(with_u64(kBegin + 16, ~0ull)));      // negative
  EXPECT_FALSE(index_from_bytes(with_u64(kSources, 1)));             // documents of no source
  EXPECT_FALSE(index_from_bytes(with_u64(kSources + 8, 4)));         // falling
  EXPECT_FALSE(index_from_bytes(with_u64(kSources + 16, 2)));        // not all documents
  EXPECT_FALSE(index_from_bytes(with_u64(kSilent + 8, 1)));          // an empty range
  EXPECT_FALSE(index_from_bytes(with_u64(kSilent + 16, 2)));         // overlapping
  EXPECT_FALSE(index_from_bytes(with_u64(kSilent + 24, 10)));        // beyond the tokens
  EXPECT_FALSE(index_from_bytes(with_u64(kSilent, ~0ull)));          // negative
  EXPECT_FALSE(index_from_bytes(with_u64(8, 0x200000001)));          // version 1
  EXPECT_FALSE(index_from_bytes(with_u64(8, 0x300000002)));          // three bytes a token
  EXPECT_FALSE(index_from_bytes(with_u64(72, 0x10200000102)));       // padding = vocabulary
  EXPECT_FALSE(index_from_bytes(with_u64(40, 0x2f2e2e2f2e2e2f2e)));  // ../../.. as a hash
}

}  // namespace
}  // namespace ptrain::data
