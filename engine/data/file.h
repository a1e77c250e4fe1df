#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/fault.h"

namespace ptrain::data {

// The bytes of a file in pieces. EngineError (kUnusable) with the path and the reason.
void read_in_pieces(const std::string& path,
                    const std::function<void(std::span<const std::byte>)>& take);
std::vector<std::byte> read_whole(const std::string& path);
// The first `most` bytes, or all of a shorter file.
std::vector<std::byte> read_beginning(const std::string& path, std::int64_t most);

// Whether it is spaces, tabs and ends of lines alone.
bool is_blank(std::span<const std::byte> text);

// A file that appears under its name only when it is complete: written beside it, and renamed by
// publish(). Without publish() nothing stays. EngineError (kEnvironment) where it cannot be
// written.
class NewFile {
 public:
  NewFile(std::string path, const fault::FilePoints& points);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  void write(std::span<const std::byte> bytes);
  void publish();

 private:
  [[noreturn]] void fail_with(const char* what) const;
  std::string path_;
  std::string unfinished_;
  fault::FilePoints points_;
  int descriptor_ = -1;
};

// Held by one process at a time; waits for it. Where the file system knows no locks it holds
// nothing: then two processes do the same work, and either result is whole.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  bool held() const { return held_; }

 private:
  int descriptor_ = -1;
  bool held_ = false;
};

}  // namespace ptrain::data
