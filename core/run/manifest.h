#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace ptrain::run {

inline constexpr const char* kManifestName = "ptrain.json";
inline constexpr int kManifestVersion = 2;  // 1: one checksum a file

// ptrain.json of a checkpoint: size and checksums of every other file in its folder. A checksum
// covers a block, so that several threads and ranks can check one file.
struct ListedFile {
  std::int64_t bytes = 0;
  std::int64_t block_bytes = std::int64_t{16} << 20;  // the last block may be shorter
  std::vector<std::string> hashes;                    // one a block
  bool operator==(const ListedFile&) const = default;
};
using Manifest = std::map<std::string, ListedFile>;

// The 64-bit XXH3 as 16 hexadecimal digits, as it stands there.
std::string hash_text(std::uint64_t hash);

nlohmann::json to_json(const ListedFile& file);
// Error (kUnusable): it does not list files, or is of a later version.
Result<Manifest> manifest_from_text(std::string_view text);

}  // namespace ptrain::run
