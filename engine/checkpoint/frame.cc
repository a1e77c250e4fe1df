#include "engine/checkpoint/frame.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/dcp/archive.h"
#include "engine/checkpoint/file_plan.h"

namespace ptrain::checkpoint {

namespace {

constexpr std::int64_t kEndOfPlainZip = std::int64_t{1} << 32;  // wrap_tensor writes no longer ones

bool holds(const InFile& file, std::int64_t offset, std::span<const std::byte> bytes) {
  std::vector<std::byte> found(bytes.size());
  file.read(offset, found);
  return std::ranges::equal(found, bytes);
}

}  // namespace

bool has_own_frame(const InFile& file, const dcp::Location& location,
                   const dcp::StoredTensor& stored, const StoredItem::Place& elements) {
  if (location.length >= kEndOfPlainZip) return false;
  const dcp::DataRecord data{static_cast<std::uint64_t>(elements.bytes), elements.crc,
                             alignment_of(elements.bytes)};
  const dcp::Wrapping around = dcp::wrap_tensor(dcp::write_tensor(stored.dtype, stored.sizes), data,
                                                static_cast<std::uint64_t>(location.offset));
  const std::int64_t begin = location.offset + std::ssize(around.head);
  const std::int64_t end = begin + elements.bytes;
  return begin == elements.offset &&
         end + std::ssize(around.tail) == location.offset + location.length &&
         holds(file, location.offset, around.head) && holds(file, end, around.tail);
}

bool has_own_frame(const InFile& file, const dcp::Location& location,
                   std::span<const std::byte> pickle) {
  const std::vector<std::byte> whole = dcp::wrap_value(pickle);
  return std::ssize(whole) == location.length && holds(file, location.offset, whole);
}

}  // namespace ptrain::checkpoint
