#include "launcher/resume/verify.h"

#include <fmt/format.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "core/dcp/metadata.h"
#include "core/run/block_hasher.h"
#include "core/run/manifest.h"
#include "launcher/base/file.h"
#include "launcher/resume/stored_checkpoint.h"

namespace ptrain::resume {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostManifest = std::size_t{1} << 30;
constexpr std::size_t kPiece = std::size_t{1} << 20;

tl::unexpected<Error> damaged(const std::string& path, const std::string& why) {
  return fail(ExitCode::kUnusable, fmt::format("{} {}", path, why), "use an older checkpoint");
}

Result<std::vector<std::string>> hashes_of(const std::string& path, std::int64_t block_bytes) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> piece(kPiece);
  run::BlockHasher hasher(block_bytes);
  while (file) {
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    hasher.update(std::as_bytes(std::span(piece).first(static_cast<std::size_t>(file.gcount()))));
  }
  if (!file.eof()) return damaged(path, "cannot be read");
  return hasher.hashes();
}

Status check_file(const std::string& path, const run::ListedFile& listed, Look look) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error) return damaged(path, "is missing");
  if (std::cmp_not_equal(size, listed.bytes))
    return damaged(path, fmt::format("has {} bytes instead of {}", size, listed.bytes));
  if (look == Look::kSizes) return {};
  PTRAIN_TRY(const auto hashes, hashes_of(path, listed.block_bytes));
  if (hashes != listed.hashes) return damaged(path, "is damaged: its checksum differs");
  return {};
}

}  // namespace

Status verify(const std::string& folder, Look look) {
  PTRAIN_CHECK(StoredCheckpoint::open(folder));
  const std::string path = folder + "/" + run::kManifestName;
  if (!is_regular_file(path)) return damaged(path, "is missing");
  PTRAIN_TRY(const std::string text, read_file(path, kMostManifest));
  const auto manifest = run::manifest_from_text(text);
  if (!manifest) return damaged(path, manifest.error().message);
  for (const auto& [name, listed] : *manifest) {
    if (!dcp::is_confined(name)) return damaged(path, "lists a file outside the checkpoint");
    PTRAIN_CHECK(check_file(folder + "/" + name, listed, look));
  }
  return {};
}

}  // namespace ptrain::resume
