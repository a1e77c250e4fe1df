#include "engine/data/cache.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "core/base/cache_folder.h"
#include "core/data/lengths.h"
#include "engine/base/engine_error.h"
#include "engine/data/file.h"
#include "engine/data/index.h"

namespace ptrain::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKnownVersion = "ptrain-known-1";
constexpr const char* kNone = "-";
constexpr fault::FilePoints kKnownPoints{"start.data.known.create", "start.data.known.write",
                                         "start.data.known.sync", "start.data.known.rename"};

}  // namespace

std::string cache_folder(const recipe::Data& data, const std::string& folder) {
  const std::string user_cache =
      ptrain::cache_folder(std::getenv("XDG_CACHE_HOME"), std::getenv("HOME"));
  const std::string found = index_folder(data, folder, user_cache);
  if (!found.empty()) return found;
  throw EngineError(ExitCode::kEnvironment, "no folder for the token index: HOME is not set",
                    "set data.cache to a folder you can write");
}

Cache::Cache(std::string folder) : folder_(std::move(folder)) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error)
    throw EngineError(ExitCode::kEnvironment,
                      fmt::format("cannot make the cache folder {}: {}", folder_, error.message()),
                      "set data.cache, or XDG_CACHE_HOME, to a folder you can write");
}

std::string Cache::index_path(const std::string& content_hash) const {
  return folder_ + "/" + content_hash;
}

bool Cache::has_index(const std::string& content_hash) const {
  try {
    return open_index(index_path(content_hash))->content_hash() == content_hash;
  } catch (const EngineError&) {
    return false;  // damaged or missing: built again
  }
}

std::optional<ContentHashes> Cache::known(const std::string& key) const {
  const std::string path = folder_ + "/" + key + ".known";
  if (!fs::exists(path)) return std::nullopt;
  const auto bytes = read_whole(path);
  std::istringstream text(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  std::string version, end;
  ContentHashes hashes;
  if (!(text >> version >> hashes.train >> hashes.validation >> end)) return std::nullopt;
  if (version != kKnownVersion || end != "end") return std::nullopt;
  if (hashes.validation == kNone) hashes.validation.clear();
  return hashes;
}

void Cache::remember(const std::string& key, const ContentHashes& hashes) const {
  NewFile file(folder_ + "/" + key + ".known", kKnownPoints);
  const std::string text = fmt::format("{} {} {} end\n", kKnownVersion, hashes.train,
                                       hashes.validation.empty() ? kNone : hashes.validation);
  file.write(std::as_bytes(std::span(text)));
  file.publish();
}

void Cache::remove_unfinished() const {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, error))
    if (entry.path().filename().string().find(".tmp-") != std::string::npos)
      fs::remove(entry.path(), error);
}

}  // namespace ptrain::data
