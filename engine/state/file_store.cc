#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "engine/base/engine_error.h"
#include "engine/base/fault.h"
#include "engine/state/offload_store.h"

namespace ptrain::state {
namespace {

std::string free_space(int file) {
  struct statvfs info {};
  if (::fstatvfs(file, &info) != 0) return "free space unknown";
  return fmt::format("{} bytes free", std::uint64_t{info.f_bavail} * info.f_frsize);
}

class FileStore final : public OffloadStore {
 public:
  FileStore(const std::string& folder, int rank, std::int64_t bytes)
      : folder_(folder), bytes_(bytes) {
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) refuse_start("make", folder, errno);
    const std::string path = fmt::format("{}/.ptrain-offload-{}", folder, rank);
    ::unlink(path.c_str());  // of a process that was killed between the next two lines
    fault::point("start.offload.create");
    file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file_ < 0) refuse_start("create", path, errno);
    fault::point("start.offload.reserve");
    ::unlink(path.c_str());
    reserve(path);
    // Asked for last: a file system that cannot reserve has it done by small writes.
    is_direct_ = ::fcntl(file_, F_SETFL, O_DIRECT) == 0;
  }
  ~FileStore() override {
    if (file_ >= 0) ::close(file_);
  }
  FileStore(const FileStore&) = delete;
  FileStore& operator=(const FileStore&) = delete;

  void read(std::int64_t offset, std::span<std::byte> to) override {
    fault::point("train.fetch.read");
    while (!to.empty()) {
      const ssize_t done = ::pread(file_, to.data(), to.size(), offset);
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) refuse("read", errno);
      if (done == 0) refuse("read", EIO);  // somebody cut the file
      offset += done;
      to = to.subspan(static_cast<std::size_t>(done));
    }
  }

  void write(std::int64_t offset, std::span<const std::byte> from) override {
    fault::point("train.offload.write");
    while (!from.empty()) {
      const ssize_t done = ::pwrite(file_, from.data(), from.size(), offset);
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) refuse("write", errno);
      offset += done;
      from = from.subspan(static_cast<std::size_t>(done));
    }
    if (!is_direct_ && ::fdatasync(file_) != 0) refuse("write", errno);
  }

 private:
  void reserve(const std::string& path) {
    if (bytes_ == 0) return;  // which posix_fallocate refuses
    int error = EINTR;
    while (error == EINTR) error = ::posix_fallocate(file_, 0, bytes_);
    if (error == 0) return;
    const std::string room = free_space(file_);
    ::close(std::exchange(file_, -1));
    throw EngineError(
        ExitCode::kEnvironment,
        fmt::format("cannot reserve {} bytes for the optimizer state of this rank in {}: {} ({})",
                    bytes_, path, std::strerror(error), room),
        fmt::format("free some space, let {} be a link to a folder on another disk, or set "
                    "parallel.offload: none",
                    folder_));
  }

  [[noreturn]] void refuse_start(const char* verb, const std::string& path, int error) const {
    std::error_code no_link;
    const auto target = std::filesystem::read_symlink(folder_, no_link);
    throw EngineError(
        ExitCode::kEnvironment,
        fmt::format("cannot {} {} for offloaded state: {}{}", verb, path, std::strerror(error),
                    no_link ? "" : fmt::format(" ({} is a link to {})", folder_, target.string())),
        fmt::format("let {} be a folder where you may write, or a link to one, or set "
                    "parallel.offload: none",
                    folder_));
  }

  [[noreturn]] void refuse(const char* verb, int error) const {
    throw EngineError(
        ExitCode::kUnusable,
        fmt::format("cannot {} offloaded optimizer state in {}: {} ({} bytes in all, {})", verb,
                    folder_, std::strerror(error), bytes_, free_space(file_)),
        "mend the disk, or go on with parallel.offload=none; checkpoints are untouched");
  }

  std::string folder_;
  std::int64_t bytes_;
  int file_ = -1;
  bool is_direct_ = false;
};

}  // namespace

std::unique_ptr<OffloadStore> make_file_store(const std::string& folder, int rank,
                                              std::int64_t bytes) {
  return std::make_unique<FileStore>(folder, rank, bytes);
}

}  // namespace ptrain::state
