#include "engine/checkpoint/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "engine/base/engine_error.h"

namespace ptrain::checkpoint {

namespace {

constexpr std::int64_t kPiece = 256 << 10;  // stays in the processor's cache
constexpr std::int64_t kFlush = 8 << 20;    // a few calls a gigabyte, and a busy disk

[[noreturn]] void refuse(std::string_view what, const std::string& path, int error) {
  throw EngineError(ExitCode::kUnusable,
                    fmt::format("cannot {} {}: {}", what, path, std::strerror(error)));
}

std::string free_space(const std::string& path) {
  struct statvfs info {};
  if (statvfs(path.c_str(), &info) != 0) return "free space unknown";
  return fmt::format("{} bytes free", std::uint64_t{info.f_bavail} * info.f_frsize);
}

}  // namespace

OutFile::OutFile(std::string path, std::int64_t bytes_needed, const fault::FilePoints& points,
                 std::string remedy)
    : path_(std::move(path)),
      bytes_needed_(bytes_needed),
      points_(points),
      remedy_(std::move(remedy)),
      descriptor_(open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) {
  if (descriptor_ < 0) refuse("create", path_, errno);
  fault::point(points_.create);
}

OutFile::~OutFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

// Hashed piece by piece, so that the copy into the page cache finds each in the processor's cache.
// The disk is told to start while the next pieces are prepared, and finish() waits for the rest
// only: twice as fast as leaving all to fsync.
void OutFile::write(std::span<const std::byte> bytes) {
  fault::point(points_.write);
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min<std::size_t>(kPiece, bytes.size()));
    hasher_.update(piece);
    put(piece);
    bytes = bytes.subspan(piece.size());
    if (size_ - on_its_way_ >= kFlush) {
      sync_file_range(descriptor_, on_its_way_, size_ - on_its_way_, SYNC_FILE_RANGE_WRITE);
      on_its_way_ = size_;
    }
  }
}

void OutFile::put(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(descriptor_, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0)
      throw EngineError(ExitCode::kUnusable,
                        fmt::format("cannot write {}: {} ({} bytes needed, {} written, {})", path_,
                                    std::strerror(errno), bytes_needed_, size_, free_space(path_)),
                        remedy_);
    size_ += done;
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
}

void OutFile::finish() {
  fault::point(points_.sync);
  if (fsync(descriptor_) != 0) refuse("write", path_, errno);
  fault::point(points_.finish);
  if (close(std::exchange(descriptor_, -1)) != 0) refuse("write", path_, errno);
}

InFile::InFile(std::string path)
    : path_(std::move(path)),
      descriptor_(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {  // a pipe would wait
  if (descriptor_ < 0) refuse("open", path_, errno);
  struct stat info {};
  if (fstat(descriptor_, &info) != 0) refuse("open", path_, errno);
  if (!S_ISREG(info.st_mode)) refuse("open", path_, EINVAL);
  size_ = info.st_size;
}

InFile::InFile(InFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_) {}

InFile::~InFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

void InFile::read(std::int64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t done = pread(descriptor_, bytes.data(), bytes.size(), offset);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) refuse("read", path_, errno);
    if (done == 0)
      throw EngineError(ExitCode::kUnusable,
                        fmt::format("{} is cut off: it ends at byte {}, {} more are needed", path_,
                                    offset, bytes.size()));
    offset += done;
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
}

std::string read_file(const std::string& path) {
  const InFile file(path);
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

std::uint64_t hash_of_part(const InFile& file, std::int64_t offset, std::int64_t bytes) {
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min(kPiece, bytes)));
  Hasher64 hasher;
  for (std::int64_t at = 0; at < bytes; at += kPiece) {
    const auto piece =
        std::span(buffer).first(static_cast<std::size_t>(std::min(kPiece, bytes - at)));
    file.read(offset + at, piece);
    hasher.update(piece);
  }
  return hasher.digest();
}

void sync_folder(const std::string& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) refuse("open", folder, errno);
  const int result = fsync(descriptor);
  const int error = errno;
  close(descriptor);
  if (result != 0) refuse("write", folder, error);
}

}  // namespace ptrain::checkpoint
