#pragma once

#include <string>
#include <vector>

#include "core/dcp/archive.h"
#include "core/dcp/item.h"
#include "core/dcp/metadata.h"
#include "engine/checkpoint/file.h"

namespace ptrain::checkpoint {

// The archive of one item, found in its file. Reads only what is asked for.
class StoredItem {
 public:
  // EngineError (kUnusable) when the bytes are not an archive that can be read here. `key` is for
  // messages.
  StoredItem(const InFile& file, const dcp::Location& location, std::string key);

  std::vector<std::byte> pickle() const { return whole("data.pkl"); }
  // Compares each record (but that of the name `except`) with its checksum; a zero says that the
  // writer made none.
  void check(const std::string& except = "") const;

  // Where in the file a record's data starts, its bytes and its CRC-32.
  struct Place {
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
    std::uint32_t crc = 0;
  };
  Place place(const std::string& record) const;

 private:
  const dcp::Record& find(const std::string& record) const;
  Place place(const dcp::Record& record) const;
  std::vector<std::byte> whole(const std::string& record) const;
  std::vector<std::byte> bytes(std::int64_t offset, std::int64_t count) const;
  template <class T>
  T usable(Result<T> result) const;
  // Says which item of which file the error is about.
  [[noreturn]] void refuse(const std::string& why) const;

  const InFile& file_;
  dcp::Location location_;
  std::string key_;
  std::vector<dcp::Record> records_;
};

}  // namespace ptrain::checkpoint
