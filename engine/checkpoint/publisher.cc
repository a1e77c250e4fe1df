#include "engine/checkpoint/publisher.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "engine/base/engine_error.h"
#include "engine/base/fault.h"
#include "engine/checkpoint/file.h"
#include "engine/checkpoint/folder.h"
#include "engine/checkpoint/merge.h"

namespace ptrain::checkpoint {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr fault::FilePoints kMetadata{"save.metadata.create", "save.metadata.write",
                                      "save.metadata.sync", "save.metadata.close"};
constexpr fault::FilePoints kManifest{"save.manifest.create", "save.manifest.write",
                                      "save.manifest.sync", "save.manifest.close"};

// Writes one small file and returns its entry in ptrain.json.
Json write_small(const std::string& path, std::span<const std::byte> bytes,
                 const fault::FilePoints& points) {
  OutFile file(path, static_cast<std::int64_t>(bytes.size()), points);
  file.write(bytes);
  file.finish();
  return run::to_json(file.listed());
}

}  // namespace

Publisher::Publisher(const std::string& folder) {
  const fs::path target = fs::absolute(folder).lexically_normal();
  folder_ = target;
  temporary_ = target.parent_path() / (kTemporaryPrefix + target.filename().string());
}

void Publisher::prepare() const {
  fault::point("save.folder.remove");
  fs::remove_all(temporary_);
  fault::point("save.folder.create");
  // No more than two levels: a run directory that was removed or moved must not come back.
  fs::create_directory(fs::path(temporary_).parent_path());
  fs::create_directory(temporary_);
  fault::point("save.folder.protect");
  fs::permissions(temporary_, fs::perms::owner_all);
}

void Publisher::publish(std::vector<RankFile> files) const {
  write_lists(std::move(files));
  fault::point("publish.folder_sync");
  sync_folder(temporary_);
  fault::point("publish.rename");
  put_in_place();
  fault::point("publish.renamed");
  sync_folder(fs::path(folder_).parent_path());
  fault::point("publish.parent_synced");
  discard();  // only there when an older checkpoint of this name was replaced
}

void Publisher::discard() const {
  std::error_code ignored;  // a prune removes what is left, or says why it cannot
  fs::remove_all(temporary_, ignored);
}

void Publisher::write_lists(std::vector<RankFile> files) const {
  Json listed = Json::object();
  for (const RankFile& file : files)
    if (!file.name.empty()) listed[file.name] = run::to_json(file.listed);
  const std::size_t ranks = files.size();
  fault::point("save.merge");
  const std::vector<std::byte> metadata = dcp::write_metadata(merge(std::move(files)));
  listed[".metadata"] = write_small(temporary_ + "/.metadata", metadata, kMetadata);
  const Json lists = {
      {"version", run::kManifestVersion}, {"ranks", ranks}, {"files", std::move(listed)}};
  const std::string manifest = lists.dump(1) + "\n";
  write_small(temporary_ + "/" + kManifestName, std::as_bytes(std::span(manifest)), kManifest);
}

// Swaps with an older checkpoint of the same name (a run that went back and came here again), so
// that one of the two is always in place.
void Publisher::put_in_place() const {
  const unsigned flags = fs::exists(folder_) ? RENAME_EXCHANGE : 0;
  if (renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, folder_.c_str(), flags) != 0)
    throw EngineError(ExitCode::kUnusable,
                      fmt::format("cannot publish {}: {}", folder_, std::strerror(errno)),
                      flags != 0 ? "remove the older one first" : "");
}

}  // namespace ptrain::checkpoint
