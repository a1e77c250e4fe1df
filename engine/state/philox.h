#pragma once

#include <array>
#include <cstdint>

namespace ptrain::state {

using PhiloxCounter = std::array<std::uint32_t, 4>;

// Philox4x32-10 (Salmon and others, SC 2011): four random words that depend on counter and key
// only. The key's low half is its first word.
constexpr PhiloxCounter philox(PhiloxCounter counter, std::uint64_t key) {
  auto key0 = static_cast<std::uint32_t>(key);
  auto key1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key0,
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key1,
               static_cast<std::uint32_t>(product0)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter;
}

// Where a word is drawn: a block of four elements, what the numbers are for, and when.
constexpr PhiloxCounter philox_counter(std::int64_t block, std::uint32_t stream,
                                       std::uint32_t step) {
  const auto bits = static_cast<std::uint64_t>(block);
  return {static_cast<std::uint32_t>(bits), static_cast<std::uint32_t>(bits >> 32), stream, step};
}

}  // namespace ptrain::state
