#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/run/block_hasher.h"
#include "core/run/manifest.h"

namespace ptrain::run {
namespace {

std::string hash_of(std::span<const std::byte> bytes) {
  Hasher64 hasher;
  hasher.update(bytes);
  return hash_text(hasher.digest());
}

// However the bytes arrive; a file that ends with a block has none of no bytes behind it.
TEST(BlockHasher, HashesEachBlockByItself) {
  constexpr std::size_t kBlock = 8;
  for (const std::size_t size : {0, 3, 8, 9, 24, 29}) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i);
    std::vector<std::string> wanted;
    for (std::size_t at = 0; at < size; at += kBlock)
      wanted.push_back(hash_of(std::span(bytes).subspan(at, std::min(kBlock, size - at))));
    for (const std::size_t step : {1, 5, 8, 64}) {
      BlockHasher hasher(kBlock);
      for (std::size_t at = 0; at < size; at += step)
        hasher.update(std::span(bytes).subspan(at, std::min(step, size - at)));
      EXPECT_EQ(hasher.hashes(), wanted) << size << " bytes, " << step << " at a time";
    }
  }
}

}  // namespace
}  // namespace ptrain::run
