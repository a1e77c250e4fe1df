#include <algorithm>
#include <filesystem>

#include "engine/base/engine_error.h"
#include "engine/base/fault.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/folder.h"

namespace ptrain::checkpoint {

namespace {

namespace fs = std::filesystem;

// The folders step-N, newest (largest N) first. Names are zero-padded, but longer ones may follow.
std::vector<std::string> newest_first(const std::string& checkpoints) {
  std::vector<std::string> names;
  std::error_code none;   // no folder: no checkpoints
  for (const fs::directory_entry& entry : fs::directory_iterator(checkpoints, none))
    if (entry.path().filename().string().starts_with("step-")) names.push_back(entry.path());
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() > b.size() : a > b;
  });
  return names;
}

// Without reading the data.
bool looks_whole(const std::string& folder) {
  try {
    check_sizes(folder, read_manifest(folder), read_folder_metadata(folder));
    return true;
  } catch (const EngineError&) {
    return false;
  }
}

// Renamed first: a half removed checkpoint must not be mistaken for one.
void remove(const fs::path& folder) {
  const fs::path hidden = folder.parent_path() / (kTemporaryPrefix + folder.filename().string());
  fs::rename(folder, hidden);
  fs::remove_all(hidden);
}

void remove_leftovers(const std::string& checkpoints) {
  std::vector<fs::path> leftovers;
  for (const fs::directory_entry& entry : fs::directory_iterator(checkpoints))
    if (entry.path().filename().string().starts_with(kTemporaryPrefix))
      leftovers.push_back(entry.path());
  for (const fs::path& path : leftovers) fs::remove_all(path);
}

}  // namespace

std::string newest_good(const std::string& checkpoints) {
  for (const std::string& folder : newest_first(checkpoints))
    if (verify(folder)) return folder;
  return {};
}

// Reads the data of as few as it may: one that verifies is enough to let others go; the rest of
// those that are kept are only counted when their sizes are right.
void prune(const std::string& checkpoints, int keep) {
  if (!fs::is_directory(checkpoints)) return;
  fault::point("checkpoint.prune", 0);
  remove_leftovers(checkpoints);
  bool verified = false;
  int kept = 0;
  for (const std::string& folder : newest_first(checkpoints)) {
    if (kept >= std::max(keep, 1) && verified) {
      fault::point("checkpoint.remove", 0);
      remove(folder);
      continue;
    }
    if (!verified) verified = verify(folder).has_value();
    if (looks_whole(folder)) ++kept;
  }
}

}  // namespace ptrain::checkpoint
