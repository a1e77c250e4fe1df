#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace ptrain::start {

// Programs and libraries on a file system that all nodes share, copied once to a disk that each
// node has for itself: thousands of ranks then open them without asking the same server.
struct CopiedFile {
  std::string source;  // absolute path
  std::string name;    // in the folder of the copies
  std::string hash;    // of the content
  bool operator==(const CopiedFile&) const = default;
};
using CopyList = std::vector<CopiedFile>;

std::string to_text(const CopyList& list);
Result<CopyList> copy_list_from_text(std::string_view text);

// Reads all of them once.
Result<CopyList> list_copies(const std::vector<std::string>& paths);

// Makes the copies in a folder below `folder` that is named after the content and after the user,
// and returns its path. What another job has copied is used once its hash is right, and replaced
// where it is not; jobs that come at the same time wait for the first. Errors (kEnvironment), such
// as a full disk, leave nothing behind.
Result<std::string> copy_here(const CopyList& list, const std::string& folder);

}  // namespace ptrain::start
