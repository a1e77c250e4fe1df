#include "launcher/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <thread>

#include "core/base/hash.h"
#include "launcher/base/descriptor.h"

namespace ptrain {
namespace {

namespace fs = std::filesystem;

using base::Descriptor;

constexpr const char* kNoFile = "give a file on a disk, no pipe and no device";

const char* remedy_of(int cause) {
  switch (cause) {
    case ENOSPC:
    case EDQUOT:
      return "free some space on its disk";
    case EACCES:
    case EPERM:
    case EROFS:
      return "give a path that you may use, or change its permissions";
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG:
      return "check the path";
    case EMFILE:
    case ENFILE:
      return "raise the limit of open files (ulimit -n)";
    case EFBIG:
      return "raise the limit of a file's size (ulimit -f)";
    case EISDIR:
      return "give a file in place of a folder";
    default:
      return "use a file on a disk that works";
  }
}

tl::unexpected<Error> failure(ExitCode code, const std::string& path, int cause) {
  return fail(code, fmt::format("{}: {}", path, std::generic_category().message(cause)),
              remedy_of(cause));
}

// Errors name `path`, the file that `unfinished` is to become.
Status write_new_file(const std::string& unfinished, const std::string& path, std::string_view text,
                      Lasts lasts) {
  const Descriptor file(
      ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) return failure(ExitCode::kEnvironment, path, errno);
  PTRAIN_CHECK(write_all(file.get(), path, text));
  if (lasts == Lasts::kForGood && ::fsync(file.get()) != 0)
    return failure(ExitCode::kEnvironment, path, errno);
  return {};
}

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

Status check_folder(const std::string& folder) {
  std::error_code unknown;  // then writing says what is wrong
  if (fs::exists(folder, unknown) || unknown) return {};
  return fail(ExitCode::kEnvironment, fmt::format("there is no folder {}", folder),
              "make it, or give a file in another");
}

// A rename would put a file in the place of a device or a pipe.
Status check_replaceable(const std::string& path) {
  std::error_code absent;  // then nothing is replaced
  const auto type = fs::status(path, absent).type();
  if (absent || type == fs::file_type::not_found || type == fs::file_type::regular) return {};
  if (type == fs::file_type::directory) return failure(ExitCode::kEnvironment, path, EISDIR);
  return fail(ExitCode::kEnvironment, path + ": not a regular file", kNoFile);
}

// A rename lasts only once the folder is written too.
Status sync_folder(const std::string& folder) {
  const Descriptor handle(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (handle.get() < 0 || ::fsync(handle.get()) != 0) {
    return failure(ExitCode::kEnvironment, folder, errno);
  }
  return {};
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t most_bytes) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return failure(ExitCode::kUsage, path, errno);
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) return failure(ExitCode::kUsage, path, errno);
  if (S_ISDIR(status.st_mode)) return failure(ExitCode::kUsage, path, EISDIR);
  if (!S_ISREG(status.st_mode))
    return fail(ExitCode::kUsage, path + ": not a regular file", kNoFile);
  // One byte more than the file is said to have, so that its end shows; more where it grows.
  std::string text(std::min(most_bytes, static_cast<std::size_t>(status.st_size)) + 1, '\0');
  std::size_t size = 0;
  while (size <= most_bytes) {
    if (size == text.size()) text.resize(std::min(2 * size, most_bytes + 1));
    const ssize_t got = ::read(file.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failure(ExitCode::kUsage, path, errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > most_bytes) {
    return fail(ExitCode::kUsage, fmt::format("{}: larger than {} bytes", path, most_bytes),
                "check that it is the file that is meant");
  }
  text.resize(size);
  return text;
}

Result<std::string> read_part(const std::string& path, std::int64_t offset,
                              std::int64_t num_bytes) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) return failure(ExitCode::kUnusable, path, errno);
  std::string bytes(static_cast<std::size_t>(num_bytes), '\0');
  for (std::size_t size = 0; size < bytes.size();) {
    const ssize_t got = ::pread(file.get(), bytes.data() + size, bytes.size() - size,
                                offset + static_cast<off_t>(size));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failure(ExitCode::kUnusable, path, errno);
    if (got == 0)
      return fail(ExitCode::kUnusable,
                  fmt::format("{}: too short: it has {} bytes, and those from {} to {} are needed",
                              path, ::lseek(file.get(), 0, SEEK_END), offset, offset + num_bytes));
    size += static_cast<std::size_t>(got);
  }
  return bytes;
}

Result<std::string> hash_of_file(const std::string& path) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 30;
  PTRAIN_TRY(const std::string text, read_file(path, kMostBytes));
  return hash128_hex(text);
}

Status publish_file(const std::string& path, std::string_view text, Lasts lasts) {
  PTRAIN_CHECK(check_folder(folder_of(path)));
  PTRAIN_CHECK(check_replaceable(path));
  const std::string unfinished = fmt::format("{}.tmp-{}", path, ::getpid());
  Status status = write_new_file(unfinished, path, text, lasts);
  if (status && ::rename(unfinished.c_str(), path.c_str()) != 0) {
    status = failure(ExitCode::kEnvironment, path, errno);
  }
  if (!status) {
    ::unlink(unfinished.c_str());
    return status;
  }
  if (lasts == Lasts::kUntilPowerFails) return {};
  return sync_folder(folder_of(path));
}

Status write_all(int descriptor, const std::string& path, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failure(ExitCode::kEnvironment, path, errno);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

bool is_regular_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

bool seen_within(std::chrono::milliseconds limit, const std::string& folder,
                 const std::function<bool()>& look) {
  constexpr std::chrono::milliseconds kPause{50};
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!look()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(kPause);
    // Opening a folder has NFS ask its server whether it has changed.
    const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  return true;
}

Result<std::string> await_file(const std::string& path, std::size_t most_bytes,
                               std::chrono::milliseconds limit) {
  if (seen_within(limit, fs::path(path).parent_path().string(),
                  [&] { return ::access(path.c_str(), F_OK) == 0; }))
    return read_file(path, most_bytes);
  return fail(ExitCode::kEnvironment,
              fmt::format("{}: not seen here within {} s", path,
                          std::chrono::duration<double>(limit).count()),
              "the run directory must be on a file system that all nodes share");
}

std::string absolute_path(const std::string& path) {
  std::error_code failed;
  const fs::path whole = fs::absolute(path, failed).lexically_normal();
  if (failed) return path;
  const bool ends_in_slash = !whole.has_filename() && whole.has_relative_path();
  return (ends_in_slash ? whole.parent_path() : whole).string();
}

std::string installed_path(std::string_view relative) {
  std::error_code failed;
  fs::path folder = fs::read_symlink("/proc/self/exe", failed).parent_path();
  while (!failed && !folder.empty()) {
    const fs::path candidate = folder / relative;
    std::error_code ignored;
    if (fs::exists(candidate, ignored)) return candidate.string();
    if (folder == folder.root_path()) break;
    folder = folder.parent_path();
  }
  return "";
}

}  // namespace ptrain
