#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ptrain::data {

struct GlobMatches {
  std::vector<std::string> files;  // regular files, sorted by the bytes of their paths
  std::int64_t skipped = 0;        // no regular file, or a link out of the pattern's folder
};

bool has_wildcard(const std::string& pattern);

// '*' and '?' match inside one name, '**' any number of folders. As in a shell, names that begin
// with a dot match only a pattern that does. Folders that are links are not entered. EngineError
// (kUnusable) for a folder that cannot be read.
GlobMatches expand_glob(const std::string& pattern, const std::string& folder);

// One name against one part of a pattern.
bool matches_part(const std::string& name, const std::string& part);

}  // namespace ptrain::data
