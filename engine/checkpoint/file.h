#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/run/block_hasher.h"
#include "core/run/manifest.h"
#include "engine/base/fault.h"

namespace ptrain::checkpoint {

// A new file, hashed as it is written. Errors (a full disk above all) are EngineErrors (kUnusable)
// with path and bytes needed.
class OutFile {
 public:
  // `bytes_needed`: what will be written; it and the remedy are for the message only.
  OutFile(std::string path, std::int64_t bytes_needed, const fault::FilePoints& points,
          std::string remedy = "free some space or let `checkpoint.keep` be smaller");
  ~OutFile();
  OutFile(const OutFile&) = delete;
  OutFile& operator=(const OutFile&) = delete;

  void write(std::span<const std::byte> bytes);
  // On disk when it returns.
  void finish();

  std::int64_t size() const { return size_; }
  // What ptrain.json says of it.
  run::ListedFile listed() const {
    return {size_, run::ListedFile{}.block_bytes, hasher_.hashes()};
  }

 private:
  void put(std::span<const std::byte> bytes);

  std::string path_;
  std::int64_t bytes_needed_;
  fault::FilePoints points_;
  std::string remedy_;
  int descriptor_;
  std::int64_t size_ = 0;
  std::int64_t on_its_way_ = 0;  // bytes that the disk was told to write
  run::BlockHasher hasher_{run::ListedFile{}.block_bytes};
};

class InFile {
 public:
  explicit InFile(std::string path);
  ~InFile();
  InFile(InFile&& other) noexcept;
  InFile& operator=(InFile&&) = delete;

  std::int64_t size() const { return size_; }
  const std::string& path() const { return path_; }
  // Exactly these bytes, or an EngineError.
  void read(std::int64_t offset, std::span<std::byte> bytes) const;

 private:
  std::string path_;
  int descriptor_;
  std::int64_t size_ = 0;
};

std::string read_file(const std::string& path);
// The hash of a part of a file, read in pieces.
std::uint64_t hash_of_part(const InFile& file, std::int64_t offset, std::int64_t bytes);
// Makes the names in a folder durable.
void sync_folder(const std::string& folder);

}  // namespace ptrain::checkpoint
