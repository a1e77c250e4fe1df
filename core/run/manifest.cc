#include "core/run/manifest.h"

#include <fmt/format.h>

#include "core/run/json_fields.h"

namespace ptrain::run {

std::string hash_text(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

Result<Manifest> manifest_from_text(std::string_view text) {
  const auto damaged =
      fail(ExitCode::kUnusable, "it is damaged: it does not list the files of a checkpoint",
           "use an older checkpoint");
  const auto json = parse_json(text, kManifestName);
  if (!json) return damaged;
  const nlohmann::json files = FieldReader(*json, kManifestName).object("files");
  if (!files.is_object()) return damaged;
  Manifest manifest;
  for (const auto& [name, fields] : files.items()) {
    ListedFile& file = manifest[name];
    if (!FieldReader(fields, name).get("bytes", file.bytes).get("xxh3", file.hash).status())
      return damaged;
  }
  return manifest;
}

}  // namespace ptrain::run
