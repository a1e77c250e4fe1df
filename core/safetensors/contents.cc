#include "core/safetensors/contents.h"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "core/safetensors/index.h"
#include "core/safetensors/json.h"

namespace ptrain::safetensors {
namespace {

constexpr std::int64_t kMostIndex = std::int64_t{256} << 20;

struct Read {
  Header header;
  std::int64_t data = 0;  // where it begins
};

Result<Read> read_file_header(const std::string& file, std::int64_t size, const Files& files) {
  PTRAIN_TRY(const std::string start,
             files.read(file, 0, std::min(size, std::int64_t{kLengthBytes})));
  PTRAIN_TRY(const std::int64_t length, header_length(std::as_bytes(std::span(start)), size));
  PTRAIN_TRY(const std::string json, files.read(file, kLengthBytes, length));
  PTRAIN_TRY(Header header, read_header(json));
  return Read{std::move(header), kLengthBytes + length};
}

class Reader {
 public:
  explicit Reader(const Files& files) : files_(files) {}

  Contents read() {
    if (files_.size(kSingleFile) >= 0)
      read_file(kSingleFile);
    else if (files_.size(kIndexFile) >= 0)
      read_sharded();
    else
      miss();
    return std::move(contents_);
  }

 private:
  void complain(std::string problem) { contents_.problems.push_back(std::move(problem)); }

  void miss() {
    for (const char* pickled : {"pytorch_model.bin", "pytorch_model.bin.index.json"})
      if (files_.size(pickled) >= 0) {
        contents_.is_pickled = true;
        return complain(
            fmt::format("it holds {}, whose pickled weights are not read, and neither "
                        "{} nor {}",
                        pickled, kSingleFile, kIndexFile));
      }
    complain(fmt::format("it holds neither {} nor {}", kSingleFile, kIndexFile));
  }

  // False: its header cannot be read.
  bool read_file(const std::string& file) {
    const std::int64_t size = files_.size(file);
    if (size < 0) {
      complain(fmt::format("{}: it is missing", file));
      return false;
    }
    auto read = read_file_header(file, size, files_);
    if (!read) {
      complain(fmt::format("{}: {}", file, read.error().message));
      return false;
    }
    const std::int64_t needed = read->data + read->header.data_bytes();
    if (size != needed)
      complain(fmt::format("{}: it {}: {} bytes instead of {}", file,
                           size < needed ? "is cut off" : "has bytes that are no tensor's", size,
                           needed));
    for (Tensor& tensor : read->header.tensors) add(file, read->data, std::move(tensor));
    return true;
  }

  void add(const std::string& file, std::int64_t data, Tensor tensor) {
    std::string name = tensor.name;
    const auto [place, is_new] =
        contents_.tensors.try_emplace(name, Stored{file, data, std::move(tensor)});
    if (!is_new)
      complain(fmt::format("'{}' is in {} and in {}", shown(name), place->second.file, file));
  }

  void read_sharded() {
    const auto weights = read_weight_map();
    if (!weights) return complain(weights.error().message);
    std::map<std::string, bool> readable;
    for (const auto& [name, file] : *weights)
      if (!readable.contains(file)) readable[file] = read_file(file);
    for (const auto& [name, file] : *weights) {
      const auto found = contents_.tensors.find(name);
      if (!readable[file])
        contents_.lost[name] = file;
      else if (found == contents_.tensors.end() || found->second.file != file)
        complain(fmt::format("'{}' is not in {}, where {} has it", shown(name), file, kIndexFile));
    }
    for (const auto& [name, stored] : contents_.tensors)
      if (!weights->contains(name))
        complain(fmt::format("'{}' is in {}, but not in {}", shown(name), stored.file, kIndexFile));
  }

  Result<WeightMap> read_weight_map() {
    const std::int64_t size = files_.size(kIndexFile);
    if (size > kMostIndex)
      return fail(ExitCode::kUnusable, fmt::format("{} is absurdly large", kIndexFile));
    PTRAIN_TRY(const std::string text, files_.read(kIndexFile, 0, size));
    return read_index(text);
  }

  const Files& files_;
  Contents contents_;
};

}  // namespace

Contents read_contents(const Files& files) { return Reader(files).read(); }

}  // namespace ptrain::safetensors
