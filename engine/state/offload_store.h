#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace ptrain::state {

// Where offloaded state waits, outside of the arena; all zeros at first. One reader or writer at a
// time, of whole pages (program::kPageBytes) in memory that begins on one. What cannot be read or
// written is an EngineError (kUnusable).
class OffloadStore {
 public:
  virtual ~OffloadStore() = default;
  virtual void read(std::int64_t offset, std::span<std::byte> to) = 0;
  virtual void write(std::int64_t offset, std::span<const std::byte> from) = 0;
};

// Makes the store of one rank for so many bytes.
using StoreMaker = std::function<std::unique_ptr<OffloadStore>(std::int64_t bytes)>;

// In memory of the host, page-locked beside a GPU. EngineError (kEnvironment) when there is not
// enough.
std::unique_ptr<OffloadStore> make_host_store(std::int64_t bytes);

// In a file of `folder`, which is made if it is not there and may be a link. Room on the disk is
// reserved at once: EngineError (kEnvironment) when there is not enough. The file has no name
// once it is open, so nothing is left however the process ends. Past the page cache where the file
// system can; else each write waits for the disk, since only then its errors are seen.
std::unique_ptr<OffloadStore> make_file_store(const std::string& folder, int rank,
                                              std::int64_t bytes);

}  // namespace ptrain::state
