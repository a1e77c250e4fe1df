#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace ptrain::run {

inline constexpr const char* kManifestName = "ptrain.json";

// ptrain.json of a checkpoint: size and checksum of every other file in its folder.
struct ListedFile {
  std::int64_t bytes = 0;
  std::string hash;
  bool operator==(const ListedFile&) const = default;
};
using Manifest = std::map<std::string, ListedFile>;

// The 64-bit XXH3 as 16 hexadecimal digits, as it stands there.
std::string hash_text(std::uint64_t hash);

// Error (kUnusable): it does not list files.
Result<Manifest> manifest_from_text(std::string_view text);

}  // namespace ptrain::run
