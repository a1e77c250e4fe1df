#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/recipe/node.h"

namespace ptrain::recipe {

inline constexpr std::size_t kMostYamlBytes = 1 << 20;
inline constexpr int kDeepestYaml = 32;

// One YAML document as nodes; the only user of yaml-cpp. Refused: more than 1 MiB,
// bytes that are not UTF-8, byte order marks, tabs as indentation, several documents, anchors,
// aliases, tags, nesting beyond 32, a key twice in one mapping. What is refused is added to
// `violations`.
Node parse_yaml(std::string_view text, const std::string& file, std::vector<Violation>& violations);

}  // namespace ptrain::recipe
