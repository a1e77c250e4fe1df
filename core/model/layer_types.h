#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ptrain::model {

enum class LayerType { kFull, kSliding };

// The words of recipe::Model::layer_types, which are separated by commas and repeated over the
// layers.
std::vector<std::string> words_of(std::string_view layer_types);
// The type of a layer; unknown words count as kFull (complete() refuses them).
LayerType layer_type(std::string_view layer_types, std::int64_t layer);

inline constexpr std::string_view kFullAttention = "full_attention";
inline constexpr std::string_view kSlidingAttention = "sliding_attention";

}  // namespace ptrain::model
