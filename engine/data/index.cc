#include "engine/data/index.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/data/index_format.h"
#include "engine/base/engine_error.h"
#include "engine/data/file.h"

namespace ptrain::data {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& reason) {
  throw EngineError(ExitCode::kUnusable,
                    fmt::format("the token index {} is unusable: {}", path, reason),
                    "remove it; the next run builds it again from the text");
}

IndexTable read_table(const std::string& path) {
  Result<IndexTable> table = index_from_bytes(read_whole(path));
  if (!table) refuse(path, table.error().message);
  return std::move(*table);
}

// The tokens of PATH.bin. Whoever shortens the file while it is mapped kills the reader (SIGBUS).
class Mapping {
 public:
  explicit Mapping(const std::string& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) refuse(path, std::strerror(errno));
    struct stat status {};
    const bool known = ::fstat(descriptor, &status) == 0;
    bytes_ = known ? static_cast<std::size_t>(status.st_size) : 0;
    if (bytes_ > 0) data_ = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, descriptor, 0);
    ::close(descriptor);
    if (!known || data_ == MAP_FAILED) refuse(path, "it cannot be mapped into memory");
  }
  ~Mapping() {
    if (bytes_ > 0) ::munmap(data_, bytes_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  // The pages stay in the system's cache, but no longer count as this process's.
  void release_pages() const {
    if (bytes_ > 0) ::madvise(data_, bytes_, MADV_DONTNEED);
  }
  std::size_t bytes() const { return bytes_; }
  template <class Token>
  std::span<const Token> tokens() const {
    return {static_cast<const Token*>(data_), bytes_ / sizeof(Token)};
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

class FileIndex final : public Index {
 public:
  explicit FileIndex(const std::string& path)
      : table_(read_table(path + ".idx")), mapping_(path + ".bin") {
    if (mapping_.bytes() % table_.token_bytes != 0 ||
        mapping_.bytes() / table_.token_bytes != static_cast<std::size_t>(table_.num_tokens()))
      refuse(path + ".bin", "its size is not what its .idx says");
  }

  std::int64_t num_documents() const override { return table_.num_documents(); }
  void release_pages() const override { mapping_.release_pages(); }
  Tokens document(std::int64_t index) const override {
    const auto i = static_cast<std::size_t>(index);
    const auto begin = static_cast<std::size_t>(table_.begin.at(i));
    const auto end = static_cast<std::size_t>(table_.begin.at(i + 1));
    if (table_.token_bytes == 4)
      return Tokens(mapping_.tokens<std::uint32_t>().subspan(begin, end - begin));
    return Tokens(mapping_.tokens<std::uint16_t>().subspan(begin, end - begin));
  }
  std::vector<TokenRange> silent(std::int64_t index) const override {
    const auto i = static_cast<std::size_t>(index);
    const std::int64_t begin = table_.begin.at(i), end = table_.begin.at(i + 1);
    std::vector<TokenRange> ranges;
    for (auto range = std::ranges::upper_bound(table_.silent, begin, {}, &TokenRange::end);
         range != table_.silent.end() && range->begin < end; ++range)
      ranges.push_back({std::max(range->begin, begin) - begin, std::min(range->end, end) - begin});
    return ranges;
  }
  std::uint32_t vocabulary() const override { return table_.vocabulary; }
  std::uint32_t pad() const override { return table_.pad; }
  std::vector<std::int64_t> sources() const override { return table_.sources; }
  const std::string& content_hash() const override { return table_.content_hash; }

 private:
  IndexTable table_;
  Mapping mapping_;
};

}  // namespace

std::shared_ptr<const Index> open_index(const std::string& path) {
  return std::make_shared<FileIndex>(path);
}

std::int64_t count_targets(const Index& index, const packing::Range& range) {
  std::int64_t count = range.length();
  for (const TokenRange& silent : index.silent(range.document))
    count -= std::max<std::int64_t>(
        0, std::min(silent.end, range.end + 1) - std::max(silent.begin, range.begin + 1));
  return count;
}

std::int64_t count_cut(const Index& index, const std::vector<std::int64_t>& documents,
                       std::int64_t sequence) {
  return std::ranges::count_if(documents, [&](std::int64_t document) {
    return index.document(document).size() - 1 > sequence;
  });
}

}  // namespace ptrain::data
