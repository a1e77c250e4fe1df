#include "core/run/manifest.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/divide.h"
#include "core/run/json_fields.h"

namespace ptrain::run {

namespace {

using Json = nlohmann::json;

// `xxh3`: one checksum of the whole file (as ptrain wrote at first), or a list for its blocks.
bool read_file(const Json& fields, const std::string& name, ListedFile& file) {
  FieldReader reader(fields, name);
  if (!reader.get("bytes", file.bytes).status()) return false;
  if (std::string whole; fields.contains("xxh3") && fields["xxh3"].is_string()) {
    reader.get("xxh3", whole);
    file.block_bytes = std::max<std::int64_t>(file.bytes, 1);
    file.hashes = {std::move(whole)};
    return true;
  }
  const Json hashes = reader.get("block_bytes", file.block_bytes).array("xxh3");
  if (!reader.status() || file.bytes < 0 || file.block_bytes <= 0) return false;
  for (const Json& hash : hashes) {
    if (!hash.is_string()) return false;
    file.hashes.push_back(hash);
  }
  return std::ssize(file.hashes) == divide_up(file.bytes, file.block_bytes);
}

}  // namespace

std::string hash_text(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

Json to_json(const ListedFile& file) {
  return {{"bytes", file.bytes}, {"block_bytes", file.block_bytes}, {"xxh3", file.hashes}};
}

Result<Manifest> manifest_from_text(std::string_view text) {
  const auto damaged =
      fail(ExitCode::kUnusable, "it is damaged: it does not list the files of a checkpoint",
           "use an older checkpoint");
  const auto json = parse_json(text, kManifestName);
  if (!json) return damaged;
  FieldReader reader(*json, kManifestName);
  int version = 1;
  if (json->contains("version")) reader.get("version", version);
  const Json files = reader.object("files");
  if (!reader.status() || version < 1) return damaged;
  if (version > kManifestVersion)
    return fail(ExitCode::kUnusable,
                fmt::format("it has version {}, but this build reads versions up to {}", version,
                            kManifestVersion),
                "use a newer ptrain, or an older checkpoint");
  Manifest manifest;
  for (const auto& [name, fields] : files.items())
    if (!read_file(fields, name, manifest[name])) return damaged;
  return manifest;
}

}  // namespace ptrain::run
