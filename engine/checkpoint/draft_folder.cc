#include "engine/checkpoint/draft_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "engine/base/engine_error.h"
#include "engine/checkpoint/file.h"

namespace ptrain::checkpoint {

namespace fs = std::filesystem;

namespace {

// The lock of a folder, or -1 where somebody else has it.
int lock_folder(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (file >= 0 && ::flock(file, LOCK_EX | LOCK_NB) == 0) return file;
  if (file >= 0) ::close(file);
  return -1;
}

std::string prefix_of(const fs::path& target) {
  return fmt::format(".tmp-{}-", target.filename().string());
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

DraftFolder::DraftFolder(const std::string& target)
    : target_(fs::absolute(target).lexically_normal()) {
  if (!target_.has_filename()) target_ = target_.parent_path();
  path_ = target_.parent_path() / fmt::format("{}{}", prefix_of(target_), ::getpid());
  if (fs::exists(fs::symlink_status(target_))) refuse_existing();
  std::error_code error;
  fs::create_directories(target_.parent_path(), error);
  if (!error) remove_leftovers();
  if (!error) fs::create_directory(path_, error);
  if (!error) fs::permissions(path_, fs::perms::owner_all, error);
  if (error)
    throw EngineError(ExitCode::kUnusable,
                      fmt::format("cannot create {}: {}", path_.string(), error.message()),
                      "give a folder where you may write");
  lock_ = lock_folder(path_);
}

DraftFolder::~DraftFolder() {
  std::error_code ignored;  // it failed already, or there is nothing
  fs::remove_all(path_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

// A process that fills its folder holds the lock; one that was killed holds none.
void DraftFolder::remove_leftovers() const {
  const std::string prefix = prefix_of(target_);
  std::error_code ignored;  // what cannot be listed or removed harms nothing
  for (const auto& entry : fs::directory_iterator(target_.parent_path(), ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix) || !is_number(std::string_view(name).substr(prefix.size())))
      continue;
    const int lock = lock_folder(entry.path());
    if (lock < 0) continue;
    fs::remove_all(entry.path(), ignored);
    ::close(lock);
  }
}

void DraftFolder::publish() const {
  sync_folder(path_);
  if (!put_in_place()) {
    if (errno == EEXIST || errno == ENOTEMPTY) refuse_existing();
    throw EngineError(ExitCode::kUnusable,
                      fmt::format("cannot publish {}: {}", target_.string(), std::strerror(errno)));
  }
  sync_folder(target_.parent_path());
}

// False: errno says why. NFS cannot promise to replace nothing; a plain rename replaces at most
// an empty folder.
bool DraftFolder::put_in_place() const {
  const char* from = path_.c_str();
  const char* to = target_.c_str();
  if (::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return true;
  return errno == EINVAL && ::rename(from, to) == 0;
}

void DraftFolder::refuse_existing() const {
  throw EngineError(ExitCode::kUsage, fmt::format("{} is there already", target_.string()),
                    "give the name of a new folder");
}

}  // namespace ptrain::checkpoint
