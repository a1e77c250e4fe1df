#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace ptrain::dcp {

// The zip container that torch.save makes of one item. All offsets count from the start of the
// item.

std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t before = 0);

struct Record {
  std::string name;          // without the leading folder: data.pkl, data/0, version ...
  std::uint64_t header = 0;  // offset of the local header
  std::uint64_t size = 0;
  std::uint32_t crc = 0;
};

// Where the list of records lies.
struct DirectoryPlace {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

constexpr std::size_t kArchiveTail = 98;  // end record + zip64 locator + zip64 end record
constexpr std::size_t kLocalHeader = 30;

// Reading is three small looks at an item that may be larger than memory: its last bytes
// (kArchiveTail or more, or the whole item), the directory, and the local header of each record
// that is wanted.
Result<DirectoryPlace> find_directory(std::span<const std::byte> tail, std::uint64_t item_size);
Result<std::vector<Record>> read_directory(std::span<const std::byte> directory,
                                           std::uint64_t item_size);
// The offset of the record's data, from the kLocalHeader bytes at record.header.
Result<std::uint64_t> data_offset(std::span<const std::byte> local_header, const Record& record,
                                  std::uint64_t item_size);

// The bytes around the data of one record `data/0` (or, without data, of a plain value): head, then
// `size` bytes with this checksum, then tail. The data starts at a multiple of `alignment` (up to
// 32768) of the file whose position `position` the item starts at. Below 4 GiB.
struct Wrapping {
  std::vector<std::byte> head;
  std::vector<std::byte> tail;
};
struct DataRecord {
  std::uint64_t size = 0;
  std::uint32_t crc = 0;
  std::uint64_t alignment = 64;
};
Wrapping wrap_tensor(std::span<const std::byte> pickle, const DataRecord& data,
                     std::uint64_t position);
// Bytes of all that, which do not depend on what the data is.
std::uint64_t wrapped_size(std::size_t pickle_size, const DataRecord& data, std::uint64_t position);
std::vector<std::byte> wrap_value(std::span<const std::byte> pickle);

}  // namespace ptrain::dcp
