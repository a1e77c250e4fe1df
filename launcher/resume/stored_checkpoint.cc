#include "launcher/resume/stored_checkpoint.h"

#include <fmt/format.h>

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "core/dcp/item.h"
#include "launcher/base/file.h"

namespace ptrain::resume {

namespace {

namespace fs = std::filesystem;

constexpr const char* kUndamaged = "use an undamaged checkpoint";
constexpr std::size_t kMostMetadata = std::size_t{4} << 30;
constexpr std::int64_t kMostItem = std::int64_t{64} << 20;

tl::unexpected<Error> damaged(const std::string& where, const Error& error) {
  return fail(error.code, fmt::format("{}: {}", where, error.message),
              error.hint.empty() ? kUndamaged : error.hint);
}

Result<std::string> read_item(const std::string& folder, const dcp::Location& place) {
  const fs::path path = fs::path(folder) / place.file;
  std::error_code error;
  const fs::path inside =
      fs::canonical(path, error).lexically_relative(fs::canonical(folder, error));
  if (error || !dcp::is_confined(inside.string()) || !is_regular_file(path.string()))
    return fail(ExitCode::kUnusable,
                fmt::format("{} is no file of the checkpoint: missing, no regular file, or leading "
                            "out of it",
                            path.string()));
  if (place.length > kMostItem || place.transformed)
    return fail(ExitCode::kUnusable, "it is compressed or absurdly large");
  return read_part(path.string(), place.offset, place.length);
}

}  // namespace

Result<StoredCheckpoint> StoredCheckpoint::open(const std::string& folder) {
  StoredCheckpoint checkpoint;
  checkpoint.folder_ = absolute_path(folder);
  const std::string path = checkpoint.folder_ + "/.metadata";
  if (!is_regular_file(path))
    return fail(ExitCode::kUnusable,
                fmt::format("{} is no checkpoint: it has no .metadata", folder),
                "give a folder that ptrain or torch.distributed.checkpoint wrote to its end");
  PTRAIN_TRY(const std::string bytes, read_file(path, kMostMetadata));
  auto metadata = dcp::read_metadata(std::as_bytes(std::span(bytes)));
  if (!metadata) return damaged(path, metadata.error());
  checkpoint.metadata_ = std::move(*metadata);
  return checkpoint;
}

bool StoredCheckpoint::has(const std::string& key) const {
  return metadata_.values.contains(key) || metadata_.tensors.contains(key);
}

Result<nlohmann::json> StoredCheckpoint::value(const std::string& key) const {
  const auto value = metadata_.values.find(key);
  const auto tensor = metadata_.tensors.find(key);
  dcp::Location place;
  if (value != metadata_.values.end())
    place = value->second;
  else if (tensor != metadata_.tensors.end() && tensor->second.chunks.size() == 1)
    place = tensor->second.chunks.front().location;
  else
    return fail(ExitCode::kUnusable, fmt::format("'{}' is not in {} as one item", key, folder_),
                kUndamaged);
  auto read = read_item(folder_, place).and_then([](const std::string& bytes) {
    return dcp::read_small_item(std::as_bytes(std::span(bytes)));
  });
  if (read) return read;
  return damaged(fmt::format("'{}' in {}", key, folder_), read.error());
}

}  // namespace ptrain::resume
