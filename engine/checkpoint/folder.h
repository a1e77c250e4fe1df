#pragma once

#include <string>

#include "core/base/result.h"
#include "core/dcp/metadata.h"
#include "core/run/manifest.h"

namespace ptrain::checkpoint {

using run::kManifestName;
using run::Manifest;
constexpr const char* kTemporaryPrefix = ".tmp-";

// Empty for a folder that ptrain did not write. EngineError (kUnusable) when it is damaged.
Manifest read_manifest(const std::string& folder);
dcp::Metadata read_folder_metadata(const std::string& folder);

// The file of an item. EngineError when it leads out of the folder, by a symbolic link say.
std::string path_in(const std::string& folder, const std::string& relative);

// Checks sizes and that every item lies inside its file; EngineError lists all that is wrong.
void check_sizes(const std::string& folder, const Manifest& manifest,
                 const dcp::Metadata& metadata);
// Reads one of `of` shares of all blocks that ptrain.json lists (or, in a folder without it, of all
// items) and checks their checksums.
struct Share {
  int part = 0;
  int of = 1;
  int threads = 1;
};
void check_content(const std::string& folder, const Manifest& manifest,
                   const dcp::Metadata& metadata, Share share);

// Both checks of the whole folder.
Status verify(const std::string& folder);

}  // namespace ptrain::checkpoint
