#include "engine/data/glob.h"

#include <algorithm>
#include <filesystem>
#include <span>

#include "engine/base/engine_error.h"

namespace ptrain::data {
namespace {

namespace fs = std::filesystem;
using Parts = std::span<const std::string>;

std::vector<std::string> split_pattern(const std::string& pattern) {
  std::vector<std::string> parts;
  for (const fs::path& part : fs::path(pattern).relative_path())
    if (!part.empty()) parts.push_back(part.string());
  if (!parts.empty() && parts.back() == "**") parts.push_back("*");
  return parts;
}

std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  if (error)
    throw EngineError(ExitCode::kUnusable,
                      "cannot read the data folder " + folder.string() + ": " + error.message(),
                      "make it readable, or name other files under data");
  return {begin(entries), end(entries)};
}

bool lies_under(const fs::path& path, const fs::path& root) {
  return std::ranges::mismatch(root, path).in1 == root.end();
}

class Walk {
 public:
  explicit Walk(GlobMatches& found) : found_(found) {}

  // Names without wildcards were written by the user: there links are followed.
  void start(fs::path root, Parts parts) {
    while (parts.size() > 1 && !has_wildcard(parts.front())) {
      root /= parts.front();
      parts = parts.subspan(1);
    }
    std::error_code error;
    root_ = fs::canonical(root, error);
    if (!error && fs::is_directory(root_)) enter(root, parts);
  }

 private:
  void enter(const fs::path& folder, Parts parts) {
    const bool any_depth = parts.front() == "**";
    if (any_depth) enter(folder, parts.subspan(1));
    for (const fs::directory_entry& entry : entries_of(folder)) {
      const std::string name = entry.path().filename().string();
      if (!matches_part(name, any_depth ? "*" : parts.front())) continue;
      std::error_code error;
      const bool is_folder = entry.is_directory(error);
      const bool is_link = entry.is_symlink(error);
      if (is_folder && !is_link && any_depth) enter(entry.path(), parts);
      if (is_folder && !is_link && !any_depth && parts.size() > 1)
        enter(entry.path(), parts.subspan(1));
      if (!is_folder && !any_depth && parts.size() == 1) add(entry, is_link);
    }
  }

  void add(const fs::directory_entry& entry, bool is_link) {
    std::error_code error;
    const bool inside = !is_link || lies_under(fs::canonical(entry.path(), error), root_);
    if (entry.is_regular_file(error) && inside)
      found_.files.push_back(entry.path().string());
    else
      ++found_.skipped;
  }

  GlobMatches& found_;
  fs::path root_;
};

}  // namespace

bool has_wildcard(const std::string& pattern) {
  return pattern.find_first_of("*?") != std::string::npos;
}

bool matches_part(const std::string& name, const std::string& part) {
  if (name.starts_with('.') && !part.starts_with('.')) return false;
  std::size_t n = 0, p = 0, star = std::string::npos, resume = 0;
  while (n < name.size()) {
    if (p < part.size() && part[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < part.size() && (part[p] == '?' || part[p] == name[n])) {
      ++n, ++p;
    } else if (star != std::string::npos) {  // let the last star take one more character
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  return part.find_first_not_of('*', p) == std::string::npos;
}

GlobMatches expand_glob(const std::string& pattern, const std::string& folder) {
  GlobMatches found;
  const std::vector<std::string> parts = split_pattern(pattern);
  const fs::path root = fs::path(pattern).is_absolute() ? fs::path("/") : fs::path(folder);
  if (!parts.empty()) Walk(found).start(root, parts);
  std::ranges::sort(found.files);
  // `**/**` reaches a file on several ways.
  found.files.erase(std::unique(found.files.begin(), found.files.end()), found.files.end());
  return found;
}

}  // namespace ptrain::data
