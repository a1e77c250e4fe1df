#include "launcher/start/local_copy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/hash.h"
#include "core/run/json_fields.h"
#include "launcher/base/descriptor.h"
#include "launcher/base/file.h"

namespace ptrain::start {

namespace {

namespace fs = std::filesystem;
using base::Descriptor;
constexpr std::size_t kPiece = std::size_t{1} << 20;

constexpr const char* kRemedy =
    "ranks can start from the shared file system: leave cluster.local_copy out";

tl::unexpected<Error> failed(const std::string& what, const std::string& path) {
  return fail(ExitCode::kEnvironment,
              fmt::format("cannot {} {}: {}", what, path, std::strerror(errno)), kRemedy);
}

// Its hash; what is read is written to `copy` unless that is -1.
Result<std::string> read_through(const std::string& path, int copy) {
  const Descriptor from(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!from.is_open()) return failed("read", path);
  Hasher64 hasher;
  std::vector<std::byte> piece(kPiece);
  for (;;) {
    const ssize_t size = ::read(from.get(), piece.data(), piece.size());
    if (size < 0) return failed("read", path);
    if (size == 0) return fmt::format("{:016x}", hasher.digest());
    const auto bytes = std::span<const std::byte>(piece).first(static_cast<std::size_t>(size));
    hasher.update(bytes);
    if (copy < 0) continue;
    const std::string_view text(reinterpret_cast<const char*>(piece.data()), bytes.size());
    if (const auto written = write_all(copy, path, text); !written)
      return fail(ExitCode::kEnvironment, "cannot copy " + written.error().message, kRemedy);
  }
}

std::string key_of(const CopyList& list) { return hash128_hex(to_text(list)).substr(0, 16); }

// A folder in /tmp could have been laid there by anyone.
bool is_ours(const std::string& folder) {
  struct stat info {};
  return ::lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
         info.st_uid == ::geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool is_whole(const CopyList& list, const std::string& folder) {
  if (!is_ours(folder)) return false;
  for (const auto& file : list) {
    const auto hash = read_through(folder + "/" + file.name, -1);
    if (!hash || *hash != file.hash) return false;
  }
  return true;
}

Status copy_one(const CopiedFile& file, const std::string& folder) {
  const std::string path = folder + "/" + file.name;
  const Descriptor to(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700));
  if (!to.is_open()) return failed("write", path);
  PTRAIN_TRY(const std::string hash, read_through(file.source, to.get()));
  if (hash == file.hash) return {};
  return fail(ExitCode::kEnvironment,
              fmt::format("{} is not what it was when this job began", file.source),
              "do not install while jobs start");
}

Status make_copies(const CopyList& list, const std::string& folder) {
  const std::string draft = fmt::format("{}-{}", folder, ::getpid());
  std::error_code ignored;
  fs::remove_all(draft, ignored);
  if (::mkdir(draft.c_str(), 0700) != 0) return failed("make", draft);
  for (const auto& file : list)
    if (auto copied = copy_one(file, draft); !copied) {
      fs::remove_all(draft, ignored);
      return copied;
    }
  fs::remove_all(folder, ignored);
  if (::rename(draft.c_str(), folder.c_str()) == 0) return {};
  auto error = failed("publish", folder);
  fs::remove_all(draft, ignored);
  return error;
}

}  // namespace

std::string to_text(const CopyList& list) {
  nlohmann::json json = nlohmann::json::array();
  for (const auto& file : list)
    json.push_back({{"source", file.source}, {"name", file.name}, {"hash", file.hash}});
  return run::dump_line(json);
}

Result<CopyList> copy_list_from_text(std::string_view text) {
  PTRAIN_TRY(const auto json, run::parse_json(text, "the list of copies", 4));
  CopyList list;
  for (const auto& entry : json) {
    CopiedFile& file = list.emplace_back();
    PTRAIN_CHECK(run::FieldReader(entry, "list of copies")
                     .get("source", file.source)
                     .get("name", file.name)
                     .get("hash", file.hash)
                     .status());
  }
  return list;
}

Result<CopyList> list_copies(const std::vector<std::string>& paths) {
  CopyList list;
  std::set<std::string> names;
  for (const auto& path : paths) {
    const std::string name = fs::path(path).filename();
    if (!names.insert(name).second) continue;  // the loader takes the first of a name too
    PTRAIN_TRY(std::string hash, read_through(path, -1));
    list.push_back({path, name, std::move(hash)});
  }
  return list;
}

Result<std::string> copy_here(const CopyList& list, const std::string& folder) {
  const std::string target = fmt::format("{}/ptrain-{}-{}", folder, ::geteuid(), key_of(list));
  const std::string lock_path = target + ".lock";
  const Descriptor lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock.is_open() || ::flock(lock.get(), LOCK_EX) != 0) return failed("lock", lock_path);
  if (is_whole(list, target)) return target;
  std::error_code error;
  if (fs::symlink_status(target, error).type() != fs::file_type::not_found && !is_ours(target))
    return fail(ExitCode::kEnvironment, fmt::format("{} is not ours alone", target),
                "remove it, or choose another folder for cluster.local_copy");
  PTRAIN_CHECK(make_copies(list, target));
  return target;
}

}  // namespace ptrain::start
