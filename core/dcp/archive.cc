#include "core/dcp/archive.h"

#include <fmt/format.h>

#include <string_view>

#include "core/base/divide.h"

namespace ptrain::dcp {

namespace {

constexpr std::uint64_t kUnknown32 = 0xffffffff;
constexpr std::uint32_t kLocalSignature = 0x04034b50;
constexpr std::uint32_t kCentralSignature = 0x02014b50;
constexpr std::uint32_t kEndSignature = 0x06054b50;
constexpr std::uint32_t kEnd64Signature = 0x06064b50;
constexpr std::uint32_t kLocator64Signature = 0x07064b50;
constexpr std::size_t kCentralHeader = 46;
constexpr std::size_t kEnd = 22;
constexpr std::size_t kLocator64 = 20;
constexpr std::size_t kEnd64 = 56;

// What lies in an archive that is written here.
constexpr std::string_view kPickleName = "archive/data.pkl";
constexpr std::string_view kDataName = "archive/data/0";
constexpr std::string_view kVersionName = "archive/version";
constexpr std::string_view kVersion = "3\n";
constexpr std::size_t kExtra = 4;  // name and length of a padding

using Bytes8 = std::span<const std::byte>;

std::uint64_t number(Bytes8 bytes, std::size_t offset, int size) {
  std::uint64_t value = 0;
  for (int i = size; i-- > 0;)
    value =
        value << 8 | std::to_integer<std::uint64_t>(bytes[offset + static_cast<std::size_t>(i)]);
  return value;
}

tl::unexpected<Error> damaged(std::string_view what) {
  return fail(ExitCode::kUnusable, fmt::format("damaged archive: {}", what));
}

// Replaces the 32-bit fields that say "see the zip64 extra field", in the order the format fixes.
Status apply_zip64(Bytes8 extra, std::uint64_t& stored, Record& record) {
  while (extra.size() >= 4) {
    const std::size_t length = number(extra, 2, 2);
    if (length > extra.size() - 4) return damaged("an extra field is cut off");
    if (number(extra, 0, 2) == 1) {
      Bytes8 payload = extra.subspan(4, length);
      for (std::uint64_t* field : {&record.size, &stored, &record.header}) {
        if (*field != kUnknown32) continue;
        if (payload.size() < 8) return damaged("a 64-bit size is cut off");
        *field = number(payload, 0, 8);
        payload = payload.subspan(8);
      }
      return {};
    }
    extra = extra.subspan(4 + length);
  }
  return {};
}

Result<Record> read_central(Bytes8 header, Bytes8 name, Bytes8 extra) {
  Record record;
  record.crc = static_cast<std::uint32_t>(number(header, 16, 4));
  std::uint64_t stored = number(header, 20, 4);
  record.size = number(header, 24, 4);
  record.header = number(header, 42, 4);
  PTRAIN_CHECK(apply_zip64(extra, stored, record));
  if (number(header, 10, 2) != 0 || stored != record.size)
    return fail(ExitCode::kUnusable, "the archive is compressed, which is not supported",
                "save it again without compression");
  const std::string_view full(reinterpret_cast<const char*>(name.data()), name.size());
  const std::size_t slash = full.find('/');
  if (slash == std::string_view::npos) return damaged("a record lies outside its folder");
  record.name = full.substr(slash + 1);
  return record;
}

class Out {
 public:
  std::vector<std::byte> bytes;
  void number(std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i) bytes.push_back(static_cast<std::byte>(value >> (8 * i) & 0xff));
  }
  void zeros(std::size_t count) { bytes.resize(bytes.size() + count); }
  void text(std::string_view text) {
    for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
  }
  void append(Bytes8 more) { bytes.insert(bytes.end(), more.begin(), more.end()); }
};

// The fields that local and central headers share: version, flags, method, time, date, checksum,
// sizes.
void common_fields(Out& out, const Record& record, std::size_t extra) {
  out.number(0, 2);
  out.number(0x0800, 2);  // names are UTF-8
  out.zeros(6);
  out.number(record.crc, 4);
  out.number(record.size, 4);
  out.number(record.size, 4);
  out.number(record.name.size(), 2);
  out.number(extra, 2);
}

// Appends a local header whose data will start at a multiple of `alignment` of `position` + its
// place.
void local_header(Out& out, const Record& record, std::uint64_t position, std::uint64_t alignment) {
  const std::uint64_t bare =
      position + out.bytes.size() + kLocalHeader + record.name.size() + kExtra;
  const std::size_t padding = (alignment - bare % alignment) % alignment;
  out.number(kLocalSignature, 4);
  common_fields(out, record, padding + kExtra);
  out.text(record.name);
  out.text("FB");  // the extra field that PyTorch pads with
  out.number(padding, 2);
  out.text(std::string(padding, 'Z'));
}

// `start`: where in the item `out` will be placed.
void directory(Out& out, const std::vector<Record>& records, std::uint64_t start) {
  const std::uint64_t offset = start + out.bytes.size();
  for (const Record& record : records) {
    out.number(kCentralSignature, 4);
    out.number(0, 2);
    common_fields(out, record, 0);
    out.zeros(10);  // comment, disk, attributes
    out.number(record.header, 4);
    out.text(record.name);
  }
  const std::uint64_t size = start + out.bytes.size() - offset;
  out.number(kEndSignature, 4);
  out.number(0, 4);
  out.number(records.size(), 2);
  out.number(records.size(), 2);
  out.number(size, 4);
  out.number(offset, 4);
  out.number(0, 2);
}

Record put_record(Out& out, std::string_view name, Bytes8 data, std::uint64_t start) {
  const Record record{std::string(name), start + out.bytes.size(), data.size(), crc32(data)};
  local_header(out, record, 0, 1);
  out.append(data);
  return record;
}

Record put_version(Out& out, std::uint64_t start) {
  return put_record(out, kVersionName, std::as_bytes(std::span(kVersion)), start);
}

// Of a record that needs no padding, without its data.
std::size_t local_size(std::string_view name) { return kLocalHeader + name.size() + kExtra; }

}  // namespace

Result<DirectoryPlace> find_directory(std::span<const std::byte> tail, std::uint64_t item_size) {
  if (tail.size() < kEnd || tail.size() > item_size) return damaged("it is too short");
  const Bytes8 end = tail.last(kEnd);
  if (number(end, 0, 4) != kEndSignature || number(end, 20, 2) != 0)
    return damaged("it does not end as an archive; the file is cut off or overwritten");
  DirectoryPlace place{number(end, 16, 4), number(end, 12, 4)};
  if (tail.size() >= kArchiveTail) {
    const Bytes8 locator = tail.subspan(tail.size() - kEnd - kLocator64, kLocator64);
    const Bytes8 end64 = tail.subspan(tail.size() - kArchiveTail, kEnd64);
    if (number(locator, 0, 4) == kLocator64Signature && number(end64, 0, 4) == kEnd64Signature)
      place = {number(end64, 48, 8), number(end64, 40, 8)};
  }
  if (place.offset > item_size || place.size > item_size - place.offset)
    return damaged("its directory lies outside");
  return place;
}

Result<std::vector<Record>> read_directory(std::span<const std::byte> directory,
                                           std::uint64_t item_size) {
  std::vector<Record> records;
  while (!directory.empty()) {
    if (directory.size() < kCentralHeader || number(directory, 0, 4) != kCentralSignature)
      return damaged("its directory is broken");
    const std::size_t name = number(directory, 28, 2);
    const std::size_t extra = number(directory, 30, 2);
    const std::size_t whole = kCentralHeader + name + extra + number(directory, 32, 2);
    if (whole > directory.size()) return damaged("its directory is cut off");
    PTRAIN_TRY(Record record, read_central(directory.first(kCentralHeader),
                                           directory.subspan(kCentralHeader, name),
                                           directory.subspan(kCentralHeader + name, extra)));
    if (record.header > item_size || record.size > item_size - record.header)
      return damaged("a record lies outside");
    records.push_back(std::move(record));
    directory = directory.subspan(whole);
  }
  return records;
}

Result<std::uint64_t> data_offset(std::span<const std::byte> local_header_bytes,
                                  const Record& record, std::uint64_t item_size) {
  if (local_header_bytes.size() < kLocalHeader ||
      number(local_header_bytes, 0, 4) != kLocalSignature)
    return damaged("a record has no header");
  const std::uint64_t offset = record.header + kLocalHeader + number(local_header_bytes, 26, 2) +
                               number(local_header_bytes, 28, 2);
  if (offset > item_size || record.size > item_size - offset)
    return damaged("a record lies outside");
  return offset;
}

std::uint64_t wrapped_size(std::size_t pickle_size, const DataRecord& data,
                           std::uint64_t position) {
  const std::uint64_t bare = local_size(kPickleName) + pickle_size + local_size(kDataName);
  const std::uint64_t head = round_up(position + bare, data.alignment) - position;
  std::size_t tail = local_size(kVersionName) + kVersion.size() + kEnd;
  for (const std::string_view name : {kPickleName, kDataName, kVersionName})
    tail += kCentralHeader + name.size();
  return head + data.size + tail;
}

Wrapping wrap_tensor(std::span<const std::byte> pickle, const DataRecord& data,
                     std::uint64_t position) {
  Out head;
  std::vector<Record> records{put_record(head, kPickleName, pickle, 0)};
  Record record{std::string(kDataName), head.bytes.size(), data.size, data.crc};
  local_header(head, record, position, data.alignment);
  records.push_back(std::move(record));
  Out tail;
  const std::uint64_t start = head.bytes.size() + data.size;
  records.push_back(put_version(tail, start));
  directory(tail, records, start);
  return {std::move(head.bytes), std::move(tail.bytes)};
}

std::vector<std::byte> wrap_value(std::span<const std::byte> pickle) {
  Out out;
  std::vector<Record> records{put_record(out, kPickleName, pickle, 0)};
  records.push_back(put_version(out, 0));
  directory(out, records, 0);
  return std::move(out.bytes);
}

}  // namespace ptrain::dcp
