#include "engine/checkpoint/stored_item.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/engine_error.h"

namespace ptrain::checkpoint {

namespace {

constexpr std::int64_t kMaxPickle = std::int64_t{1} << 30;

std::uint32_t crc_of(const InFile& file, StoredItem::Place place) {
  constexpr std::int64_t kPiece = 1 << 20;
  std::vector<std::byte> piece(static_cast<std::size_t>(std::min(kPiece, place.bytes)));
  std::uint32_t crc = 0;
  for (std::int64_t at = 0; at < place.bytes; at += kPiece) {
    const auto part =
        std::span(piece).first(static_cast<std::size_t>(std::min(kPiece, place.bytes - at)));
    file.read(place.offset + at, part);
    crc = dcp::crc32(part, crc);
  }
  return crc;
}

}  // namespace

void StoredItem::refuse(const std::string& why) const {
  throw EngineError(ExitCode::kUnusable, fmt::format("'{}' in {}: {}", key_, file_.path(), why));
}

template <class T>
T StoredItem::usable(Result<T> result) const {
  if (result) return std::move(*result);
  refuse(result.error().message);
}

StoredItem::StoredItem(const InFile& file, const dcp::Location& location, std::string key)
    : file_(file), location_(location), key_(std::move(key)) {
  if (location.transformed)
    refuse("it is compressed, which is not supported; save it again without the extension");
  const auto size = static_cast<std::uint64_t>(location.length);
  const std::int64_t tail =
      std::min<std::int64_t>(location.length, static_cast<std::int64_t>(dcp::kArchiveTail));
  const dcp::DirectoryPlace place =
      usable(dcp::find_directory(bytes(location.length - tail, tail), size));
  records_ = usable(dcp::read_directory(
      bytes(static_cast<std::int64_t>(place.offset), static_cast<std::int64_t>(place.size)), size));
  for (const dcp::Record& record : records_)  // its text is "big" or "little"
    if (record.name == "byteorder" && record.size == 3)
      refuse("it is big-endian, which is not supported");
}

std::vector<std::byte> StoredItem::bytes(std::int64_t offset, std::int64_t count) const {
  std::vector<std::byte> result(static_cast<std::size_t>(count));
  file_.read(location_.offset + offset, result);
  return result;
}

const dcp::Record& StoredItem::find(const std::string& name) const {
  for (const dcp::Record& record : records_)
    if (record.name == name) return record;
  refuse("it has no record " + name);
}

StoredItem::Place StoredItem::place(const dcp::Record& record) const {
  const auto header = static_cast<std::int64_t>(record.header);
  const std::int64_t count = std::min<std::int64_t>(static_cast<std::int64_t>(dcp::kLocalHeader),
                                                    location_.length - header);
  const std::uint64_t offset = usable(
      dcp::data_offset(bytes(header, count), record, static_cast<std::uint64_t>(location_.length)));
  return {location_.offset + static_cast<std::int64_t>(offset),
          static_cast<std::int64_t>(record.size), record.crc};
}

StoredItem::Place StoredItem::place(const std::string& record) const { return place(find(record)); }

std::vector<std::byte> StoredItem::whole(const std::string& record) const {
  const Place found = place(record);
  if (found.bytes > kMaxPickle) refuse("its description is absurdly large");
  return bytes(found.offset - location_.offset, found.bytes);
}

void StoredItem::check(const std::string& except) const {
  for (const dcp::Record& record : records_)
    if (record.name != except && record.crc != 0 && crc_of(file_, place(record)) != record.crc)
      refuse("it is damaged: the checksum of its record " + record.name + " differs");
}

}  // namespace ptrain::checkpoint
