#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/hash.h"

namespace ptrain::run {

// The checksums of a file's blocks, from bytes that arrive in order.
class BlockHasher {
 public:
  explicit BlockHasher(std::int64_t block_bytes) : block_bytes_(block_bytes) {}
  void update(std::span<const std::byte> bytes);
  // Of all blocks, the last one as long as it is, as hash_text.
  std::vector<std::string> hashes() const;

 private:
  std::int64_t block_bytes_;
  std::int64_t in_block_ = 0;  // bytes of the last block
  Hasher64 hasher_;            // of the last block
  std::vector<std::string> whole_;
};

}  // namespace ptrain::run
