#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "engine/base/engine_error.h"
#include "engine/base/fault.h"
#include "engine/checkpoint/agree.h"
#include "engine/checkpoint/checkpoint.h"
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
  return {{"bytes", file.size()}, {"xxh3", run::hash_text(file.hash())}};
}

std::vector<RankFile> parse_reports(const std::vector<std::string>& reports) {
  std::vector<RankFile> files;
  for (const std::string& report : reports)
    files.push_back(rank_file_from_json(Json::from_msgpack(report)));
  return files;
}

class Publisher {
 public:
  Publisher(std::string folder, std::string temporary)
      : folder_(std::move(folder)), temporary_(std::move(temporary)) {}

  void prepare() const {
    fault::point("save.folder.remove");
    fs::remove_all(temporary_);
    fault::point("save.folder.create");
    // No more than two levels: a run directory that was removed or moved must not come back.
    fs::create_directory(fs::path(temporary_).parent_path());
    fs::create_directory(temporary_);
    fault::point("save.folder.protect");
    fs::permissions(temporary_, fs::perms::owner_all);
  }

  void publish(std::vector<RankFile> files) const {
    write_lists(std::move(files));
    fault::point("publish.folder_sync");
    sync_folder(temporary_);
    fault::point("publish.rename");
    put_in_place();
    fault::point("publish.renamed");
    sync_folder(fs::path(folder_).parent_path());
    fault::point("publish.parent_synced");
    fs::remove_all(temporary_);  // only there when an older checkpoint of this name was replaced
  }

  void discard() const {
    std::error_code ignored;  // the save has failed already; the next prune removes what is left
    fs::remove_all(temporary_, ignored);
  }

 private:
  void write_lists(std::vector<RankFile> files) const {
    Json listed = Json::object();
    for (const RankFile& file : files)
      if (!file.name.empty()) listed[file.name] = {{"bytes", file.bytes}, {"xxh3", file.hash}};
    const std::size_t ranks = files.size();
    fault::point("save.merge");
    const std::vector<std::byte> metadata = dcp::write_metadata(merge(std::move(files)));
    listed[".metadata"] = write_small(temporary_ + "/.metadata", metadata, kMetadata);
    const std::string manifest =
        Json{{"version", 1}, {"ranks", ranks}, {"files", std::move(listed)}}.dump(1) + "\n";
    write_small(temporary_ + "/" + kManifestName, std::as_bytes(std::span(manifest)), kManifest);
  }

  // Swaps with an older checkpoint of the same name (a run that went back and came here again), so
  // that one of the two is always in place.
  void put_in_place() const {
    const unsigned flags = fs::exists(folder_) ? RENAME_EXCHANGE : 0;
    if (renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, folder_.c_str(), flags) != 0)
      throw EngineError(ExitCode::kUnusable,
                        fmt::format("cannot publish {}: {}", folder_, std::strerror(errno)),
                        flags != 0 ? "remove the older one first" : "");
  }

  std::string folder_;
  std::string temporary_;
};

}  // namespace

void save(const std::string& folder, const Items& items, comm::Communicator& world) {
  const fs::path target = fs::absolute(folder).lexically_normal();
  const std::string temporary =
      target.parent_path() / (kTemporaryPrefix + target.filename().string());
  const Publisher publisher(target, temporary);
  const bool first = world.rank() == 0;
  try {
    together(world, [&] {
      if (first) publisher.prepare();
    });
    std::string report;
    together(world, [&] {
      const auto bytes = Json::to_msgpack(to_json(write_rank_file(temporary, items, world.rank())));
      report.assign(bytes.begin(), bytes.end());
    });
    fault::point("save.reports");
    const std::vector<std::string> reports = gather_bytes(report, world);
    together(world, [&] {
      if (first) publisher.publish(parse_reports(reports));
    });
  } catch (const EngineError&) {
    if (first) publisher.discard();
    throw;
  }
}

}  // namespace ptrain::checkpoint
