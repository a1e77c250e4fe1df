#include "engine/checkpoint/folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <vector>

#include "engine/base/engine_error.h"
#include "engine/checkpoint/file.h"
#include "engine/checkpoint/open_files.h"
#include "engine/checkpoint/share_out.h"
#include "engine/checkpoint/stored_item.h"

namespace ptrain::checkpoint {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& message, const std::string& hint = "") {
  throw EngineError(ExitCode::kUnusable, message, hint);
}

void each_item(const dcp::Metadata& metadata,
               const std::function<void(const std::string&, const dcp::Location&)>& use) {
  for (const auto& [key, entry] : metadata.tensors)
    for (const dcp::Chunk& chunk : entry.chunks) use(key, chunk.location);
  for (const auto& [key, location] : metadata.values) use(key, location);
}

std::int64_t size_or_missing(const std::string& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? -1 : static_cast<std::int64_t>(size);
}

// file -> the bytes it must have: exactly (manifest) or at least (ends of the items).
std::map<std::string, std::int64_t> needed_sizes(const dcp::Metadata& metadata) {
  std::map<std::string, std::int64_t> needed;
  each_item(metadata, [&](const std::string&, const dcp::Location& location) {
    std::int64_t& bytes = needed[location.file];
    bytes = std::max(bytes, location.offset + location.length);
  });
  return needed;
}

std::string size_problem(const std::string& path, std::int64_t expected, bool exact) {
  const std::int64_t found = size_or_missing(path);
  if (found < 0) return fmt::format("{} is missing", path);
  if (found < expected || (exact && found != expected))
    return fmt::format("{} has {} bytes instead of {}", path, found, expected);
  return {};
}

// Each a piece of work of its own, in the order of the bytes. What they refer to must live on.
using Checks = std::vector<std::function<void()>>;

Checks block_checks(const std::string& folder, const Manifest& manifest, OpenFiles& files) {
  Checks checks;
  for (const auto& [name, listed] : manifest)
    for (std::size_t i = 0; i < listed.hashes.size(); ++i)
      checks.push_back([&, i] {
        const std::int64_t begin = static_cast<std::int64_t>(i) * listed.block_bytes;
        const std::int64_t bytes = std::min(listed.block_bytes, listed.bytes - begin);
        if (run::hash_text(hash_of_part(*files.get(name), begin, bytes)) != listed.hashes[i])
          refuse(fmt::format("{}/{} is damaged: its checksum differs", folder, name),
                 "use an older checkpoint");
      });
  return checks;
}

// By the checksums that PyTorch makes.
Checks item_checks(const dcp::Metadata& metadata, OpenFiles& files) {
  Checks checks;
  each_item(metadata, [&](const std::string& key, const dcp::Location& location) {
    checks.push_back([&] {
      const auto file = files.get(location.file);
      StoredItem(*file, location, key).check();
    });
  });
  return checks;
}

}  // namespace

Manifest read_manifest(const std::string& folder) {
  const std::string path = folder + "/" + kManifestName;
  if (!fs::exists(path)) return {};
  auto manifest = run::manifest_from_text(read_file(path));
  if (!manifest) refuse(path + ": " + manifest.error().message, manifest.error().hint);
  return std::move(*manifest);
}

dcp::Metadata read_folder_metadata(const std::string& folder) {
  const std::string path = folder + "/.metadata";
  if (!fs::exists(path))
    refuse(folder + " is not a checkpoint: it has no .metadata",
           "give a folder that ptrain or torch.distributed.checkpoint wrote to its end");
  const std::string bytes = read_file(path);
  auto metadata = dcp::read_metadata(std::as_bytes(std::span(bytes)));
  if (!metadata) refuse(path + ": " + metadata.error().message, metadata.error().hint);
  return std::move(*metadata);
}

std::string path_in(const std::string& folder, const std::string& relative) {
  const fs::path path = fs::path(folder) / relative;
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error) refuse(fmt::format("{} is missing", path.string()));
  const fs::path inside = real.lexically_relative(fs::canonical(folder));
  if (!dcp::is_confined(relative) || !dcp::is_confined(inside.string()))
    refuse(fmt::format("{} leads out of the checkpoint", path.string()));
  return path;
}

void check_sizes(const std::string& folder, const Manifest& manifest,
                 const dcp::Metadata& metadata) {
  std::string problems;
  const auto add = [&](const std::string& problem) {
    if (!problem.empty()) problems.append(problems.empty() ? "" : "\n").append(problem);
  };
  for (const auto& [name, bytes] : needed_sizes(metadata)) {
    if (!manifest.empty() && !manifest.contains(name))
      add(fmt::format("{}/{} is not listed in {}", folder, name, kManifestName));
    else if (!manifest.contains(name) || manifest.at(name).bytes < bytes)
      add(size_problem(folder + "/" + name, bytes, false));
  }
  for (const auto& [name, file] : manifest)
    add(size_problem(folder + "/" + name, file.bytes, true));
  if (!problems.empty()) refuse(problems, "use an older checkpoint; this one is incomplete");
}

void check_content(const std::string& folder, const Manifest& manifest,
                   const dcp::Metadata& metadata, Share share) {
  OpenFiles files(folder);
  const auto checks =
      manifest.empty() ? item_checks(metadata, files) : block_checks(folder, manifest, files);
  const auto of = static_cast<std::size_t>(share.of);
  const auto begin = checks.size() * static_cast<std::size_t>(share.part) / of;
  const auto end = checks.size() * static_cast<std::size_t>(share.part + 1) / of;
  share_out(end - begin, share.threads, [&](std::size_t i) { checks[begin + i](); });
}

Status verify(const std::string& folder) {
  try {
    const Manifest manifest = read_manifest(folder);
    const dcp::Metadata metadata = read_folder_metadata(folder);
    check_sizes(folder, manifest, metadata);
    check_content(folder, manifest, metadata, {});
    return {};
  } catch (const EngineError& error) {
    return tl::unexpected<Error>(error.error());
  }
}

}  // namespace ptrain::checkpoint
