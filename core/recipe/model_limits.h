#pragma once

#include <cstdint>

namespace ptrain::recipe {

// The largest sizes that a model may have, wherever it comes from: products of them stay inside 63
// bits.
inline constexpr std::int64_t kMostHidden = std::int64_t{1} << 20;
inline constexpr std::int64_t kMostIntermediate = std::int64_t{1} << 22;
inline constexpr std::int64_t kMostLayers = 4096;
inline constexpr std::int64_t kMostHeads = 65536;
inline constexpr std::int64_t kMostHeadDim = 65536;
inline constexpr std::int64_t kMostVocabulary = std::int64_t{1} << 24;

}  // namespace ptrain::recipe
