#include "engine/data/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>

#include "engine/base/engine_error.h"

namespace ptrain::data {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 18;
constexpr const char* kCacheHint =
    "free space there, or set data.cache, or XDG_CACHE_HOME, to a folder you can write";

[[noreturn]] void cannot_read(const std::string& path) {
  throw EngineError(ExitCode::kUnusable,
                    fmt::format("cannot read the data file {}: {}", path, std::strerror(errno)),
                    "make it readable, or leave it out of data");
}

class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : path_(path) {
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor_ < 0) cannot_read(path_);
  }
  ~OpenFile() { ::close(descriptor_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  std::size_t read(std::span<std::byte> into) {
    while (true) {
      const ssize_t count = ::read(descriptor_, into.data(), into.size());
      if (count >= 0) return static_cast<std::size_t>(count);
      if (errno != EINTR) cannot_read(path_);
    }
  }

 private:
  const std::string& path_;
  int descriptor_;
};

}  // namespace

void read_in_pieces(const std::string& path,
                    const std::function<void(std::span<const std::byte>)>& take) {
  OpenFile file(path);
  // Not cleared: most files are far smaller, and clearing it would cost more than reading them.
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kPiece);
  const std::span piece(buffer.get(), kPiece);
  while (const std::size_t count = file.read(piece)) take(piece.first(count));
}

std::vector<std::byte> read_whole(const std::string& path) {
  std::vector<std::byte> bytes;
  read_in_pieces(path, [&](auto piece) { bytes.insert(bytes.end(), piece.begin(), piece.end()); });
  return bytes;
}

std::vector<std::byte> read_beginning(const std::string& path, std::int64_t most) {
  OpenFile file(path);
  std::vector<std::byte> bytes(static_cast<std::size_t>(most));
  std::size_t filled = 0;
  while (const std::size_t count = file.read(std::span(bytes).subspan(filled))) filled += count;
  bytes.resize(filled);
  return bytes;
}

bool is_blank(std::span<const std::byte> text) {
  return std::ranges::all_of(text, [](std::byte byte) {
    return std::string_view(" \t\r\n").find(static_cast<char>(byte)) != std::string_view::npos;
  });
}

NewFile::NewFile(std::string path, const fault::FilePoints& points)
    : path_(std::move(path)),
      unfinished_(path_ + fmt::format(".tmp-{}", ::getpid())),
      points_(points) {
  descriptor_ = ::open(unfinished_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail_with("create");
  fault::point(points_.create);
}

NewFile::~NewFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(unfinished_.c_str());
}

void NewFile::fail_with(const char* what) const {
  throw EngineError(ExitCode::kEnvironment,
                    fmt::format("cannot {} {}: {}", what, path_, std::strerror(errno)), kCacheHint);
}

void NewFile::write(std::span<const std::byte> bytes) {
  fault::point(points_.write);
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count >= 0)
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    else if (errno != EINTR)
      fail_with("write");
  }
}

void NewFile::publish() {
  fault::point(points_.sync);
  if (::fsync(descriptor_) != 0) fail_with("write");
  fault::point(points_.finish);
  if (std::rename(unfinished_.c_str(), path_.c_str()) != 0) fail_with("rename");
  ::close(descriptor_);
  descriptor_ = -1;
}

FolderLock::FolderLock(const std::string& folder) {
  descriptor_ = ::open((folder + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor_ < 0)
    throw EngineError(
        ExitCode::kEnvironment,
        fmt::format("cannot write in the cache folder {}: {}", folder, std::strerror(errno)),
        kCacheHint);
  int result = 0;
  do result = ::flock(descriptor_, LOCK_EX);
  while (result != 0 && errno == EINTR);
  held_ = result == 0;
}

FolderLock::~FolderLock() { ::close(descriptor_); }

}  // namespace ptrain::data
