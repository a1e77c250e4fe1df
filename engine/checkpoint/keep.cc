#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>

#include "engine/base/engine_error.h"
#include "engine/base/fault.h"
#include "engine/checkpoint/agree.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/folder.h"

namespace ptrain::checkpoint {

namespace {

namespace fs = std::filesystem;

// What is in the folder under names that begin so; a folder that cannot be read holds nothing.
std::vector<std::string> named_in(const std::string& folder, std::string_view beginning) {
  std::vector<std::string> names;
  std::error_code ends;
  for (fs::directory_iterator entry(folder, ends), end; !ends && entry != end;
       entry.increment(ends))
    if (entry->path().filename().string().starts_with(beginning)) names.push_back(entry->path());
  return names;
}

// The folders step-N, newest (largest N) first. Names are zero-padded, but longer ones may follow.
std::vector<std::string> newest_first(const std::string& checkpoints) {
  std::vector<std::string> names = named_in(checkpoints, "step-");
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
  fault::point("publish.remove.rename");
  fs::rename(folder, hidden);
  fault::point("publish.remove.delete");
  fs::remove_all(hidden);
  fault::point("publish.removed");
}

}  // namespace

Newest open_newest(const std::string& checkpoints, comm::Communicator& world, Check check) {
  Newest newest;
  // One rank's list for all: a slow file system may show them different ones.
  const bool first = world.rank() == 0;
  const auto names = first ? newest_first(checkpoints) : std::vector<std::string>{};
  const std::string list = gather_bytes(nlohmann::json(names).dump(), world).front();
  std::string problems;
  for (const std::string folder : nlohmann::json::parse(list)) {
    try {
      newest.source.emplace(folder, world, check);
      return newest;
    } catch (const EngineError& error) {
      if (error.error().code != ExitCode::kUnusable) throw;
      newest.damaged.push_back(error.error().message);
      problems += "\n" + error.error().message;
    }
  }
  if (!problems.empty())
    throw EngineError(ExitCode::kUnusable, "no checkpoint of this run is good:" + problems,
                      "bring one of them back from a copy, or start a new run");
  return newest;
}

// Reads the data of as few as it may: one that verifies is enough to let others go; the rest of
// those that are kept are only counted when their sizes are right.
std::vector<std::string> prune(const std::string& checkpoints, int keep) {
  std::vector<std::string> left;
  const auto try_to = [&](const std::function<void()>& work) {
    if (const auto failure = failure_of(work)) left.push_back(failure->message);
  };
  fault::point("publish.leftovers");
  for (const std::string& leftover : named_in(checkpoints, kTemporaryPrefix))
    try_to([&] { fs::remove_all(leftover); });
  bool verified = false;
  int kept = 0;
  for (const std::string& folder : newest_first(checkpoints)) {
    if (kept >= std::max(keep, 1) && verified) {
      try_to([&] { remove(folder); });
      continue;
    }
    fault::point("publish.verify");
    if (!verified) verified = verify(folder).has_value();
    if (looks_whole(folder)) ++kept;
  }
  return left;
}

}  // namespace ptrain::checkpoint
