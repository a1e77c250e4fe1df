#pragma once

#include <optional>
#include <string>

#include "core/recipe/data.h"

namespace ptrain::data {

// Where the cache of token indexes lies: index_folder (core/data/lengths.h) with the user's
// XDG_CACHE_HOME and HOME. The only reader of the environment here. EngineError (kEnvironment)
// where there is none.
std::string cache_folder(const recipe::Data& data, const std::string& folder);

struct ContentHashes {
  std::string train;
  std::string validation;  // empty: none
  bool operator==(const ContentHashes&) const = default;
};

// HASH.bin and HASH.idx for each content, and KEY.known for each set of files (by path, size and
// time) whose contents have been hashed before; and summaries of lengths (core/data/lengths.h). Any
// file may be removed at any time before a run: it is made again.
class Cache {
 public:
  // Makes the folder; EngineError (kEnvironment) when that fails.
  explicit Cache(std::string folder);
  std::string index_path(const std::string& content_hash) const;
  // Whether a sound index of this content is there.
  bool has_index(const std::string& content_hash) const;
  std::optional<ContentHashes> known(const std::string& key) const;
  void remember(const std::string& key, const ContentHashes& hashes) const;
  // What builders that died have left. Only under the folder's lock.
  void remove_unfinished() const;
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

}  // namespace ptrain::data
