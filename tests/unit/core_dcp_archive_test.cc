#include <gtest/gtest.h>

#include <string>

#include "core/dcp/archive.h"
#include "core/dcp/item.h"

namespace ptrain::dcp {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(Crc32, KnownValues) {  // zlib.crc32
  EXPECT_EQ(crc32(bytes_of("123456789")), 0xcbf43926u);
  std::string text;
  for (int i = 0; i < 768; ++i) text.push_back(static_cast<char>(i));
  EXPECT_EQ(crc32(bytes_of(text)), 0xb0c0df2au);
  EXPECT_EQ(crc32(bytes_of(text).subspan(5), crc32(bytes_of(text).first(5))), 0xb0c0df2au);
}

TEST(Crc32, ItsPiecesMayHaveAnyLength) {
  std::string text;
  for (int i = 0; i < 1100; ++i) text.push_back(static_cast<char>(i * i >> 3));
  for (std::size_t size = 0; size < text.size(); ++size) {
    const auto bytes = bytes_of(text).first(size);
    std::uint32_t piecewise = 0;  // too short to be folded
    for (std::size_t at = 0; at < size; at += 40)
      piecewise = crc32(bytes.subspan(at, std::min<std::size_t>(40, size - at)), piecewise);
    ASSERT_EQ(crc32(bytes), piecewise) << size;
  }
}

// The whole item in memory.
Result<std::vector<Record>> records_of(std::span<const std::byte> item) {
  PTRAIN_TRY(const DirectoryPlace place, find_directory(item, item.size()));
  return read_directory(item.subspan(place.offset, place.size), item.size());
}

TEST(Archive, DataIsAlignedInTheFile) {
  const std::vector<std::byte> data(100, std::byte{7});
  for (const std::uint64_t position : {0ul, 1ul, 4000ul, 123457ul}) {
    const Wrapping around =
        wrap_tensor(bytes_of("pickle"), {data.size(), crc32(data), 4096}, position);
    EXPECT_EQ((position + around.head.size()) % 4096, 0u);
    std::vector<std::byte> item = around.head;
    EXPECT_EQ(wrapped_size(6, {data.size(), 0, 4096}, position),
              around.head.size() + data.size() + around.tail.size());
    item.insert(item.end(), data.begin(), data.end());
    item.insert(item.end(), around.tail.begin(), around.tail.end());
    const auto records = records_of(item);
    ASSERT_TRUE(records) << records.error().message;
    ASSERT_EQ(records->size(), 3u);
    EXPECT_EQ((*records)[1].name, "data/0");
    const Record& record = (*records)[1];
    EXPECT_EQ(data_offset(std::span(item).subspan(record.header), record, item.size()),
              around.head.size());
  }
}

TEST(Archive, TruncationAndDamageAreRefused) {
  const std::vector<std::byte> whole = wrap_value(write_value(7));
  ASSERT_TRUE(records_of(whole));
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(records_of(std::span(whole).first(size))) << size;
  std::vector<std::byte> bad = whole;
  bad[bad.size() - 6] = std::byte{0xff};  // the directory's offset
  EXPECT_FALSE(records_of(bad));
}

TEST(Tensor, PickleReadsBack) {
  const StoredTensor tensor = read_tensor(write_tensor("bfloat16", {3, 70000, 2})).value();
  EXPECT_EQ(tensor.dtype, "bfloat16");
  EXPECT_EQ(tensor.record, "data/0");
  EXPECT_EQ(tensor.sizes, (std::vector<std::int64_t>{3, 70000, 2}));
  EXPECT_EQ(tensor.strides, (std::vector<std::int64_t>{140000, 2, 1}));
  EXPECT_FALSE(read_tensor(write_value(7)));
}

}  // namespace
}  // namespace ptrain::dcp
