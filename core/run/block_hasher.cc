#include "core/run/block_hasher.h"

#include <algorithm>
#include <utility>

#include "core/run/manifest.h"

namespace ptrain::run {

void BlockHasher::update(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto room = static_cast<std::size_t>(block_bytes_ - in_block_);
    const auto part = bytes.first(std::min(room, bytes.size()));
    hasher_.update(part);
    in_block_ += std::ssize(part);
    bytes = bytes.subspan(part.size());
    if (in_block_ < block_bytes_) continue;
    whole_.push_back(hash_text(std::exchange(hasher_, Hasher64()).digest()));
    in_block_ = 0;
  }
}

std::vector<std::string> BlockHasher::hashes() const {
  std::vector<std::string> all = whole_;
  if (in_block_ > 0) all.push_back(hash_text(hasher_.digest()));
  return all;
}

}  // namespace ptrain::run
