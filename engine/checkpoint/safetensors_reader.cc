#include "engine/checkpoint/safetensors_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/model/slice.h"
#include "core/safetensors/import.h"
#include "engine/base/all_finite.h"
#include "engine/base/engine_error.h"
#include "engine/base/tensor.h"
#include "engine/checkpoint/agree.h"
#include "engine/checkpoint/convert.h"
#include "engine/checkpoint/file.h"

namespace ptrain::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kPiece = std::int64_t{1} << 20;  // elements of one read

// PyTorch's name of a dtype that find_parameters lets pass.
std::string torch_name(const std::string& dtype) {
  if (dtype == "F32") return "float32";
  if (dtype == "F64") return "float64";
  return dtype == "F16" ? "float16" : "bfloat16";
}

class Folder {
 public:
  Folder(const std::string& path, const model::Architecture& architecture) : path_(path) {
    const safetensors::Contents contents = safetensors::read_contents(
        {[this](const std::string& name) {
           std::error_code error;
           const fs::path file = fs::path(path_) / name;
           if (!fs::is_regular_file(file, error)) return std::int64_t{-1};
           return static_cast<std::int64_t>(fs::file_size(file, error));
         },
         [this](const std::string& name, std::int64_t offset, std::int64_t bytes) {
           std::string text(static_cast<std::size_t>(bytes), '\0');
           file(name).read(offset, std::as_writable_bytes(std::span(text)));
           return Result<std::string>(std::move(text));
         }});
    auto import = safetensors::find_parameters(contents, architecture);
    if (!import) import.error().message = fmt::format("{}: {}", path_, import.error().message);
    import_ = value_or_throw(std::move(import));
    for (std::size_t i = 0; i < import_.names.size(); ++i)
      stored_[architecture.parameters[i].name] = contents.tensors.at(import_.names[i]);
    if (!import_.tied_copy.empty()) head_ = contents.tensors.at(import_.tied_copy);
  }

  int tied() const { return import_.tied; }
  bool has_tied_copy() const { return !import_.tied_copy.empty(); }
  const safetensors::Stored& stored(const std::string& parameter) const {
    return stored_.at(parameter);
  }
  const safetensors::Stored& head() const { return head_; }

  // Elements [begin, end) of a tensor to `to`.
  void read(const safetensors::Stored& stored, std::int64_t begin, std::int64_t end, DType dtype,
            std::byte* to) {
    const std::string name = torch_name(stored.tensor.dtype);
    const std::int64_t bytes = safetensors::element_bytes(stored.tensor.dtype);
    const InFile& in = file(stored.file);
    for (std::int64_t at = begin; at < end; at += kPiece) {
      const std::int64_t count = std::min(kPiece, end - at);
      buffer_.resize(static_cast<std::size_t>(count * bytes));
      in.read(stored.begin() + at * bytes, buffer_);
      std::byte* values = to + (at - begin) * size_of(dtype);
      convert(buffer_, name, values, dtype);
      if (!all_finite(contiguous(values, dtype, 1, count))) not_finite_.insert(stored.tensor.name);
    }
  }

  // What was read holds no NaN and no infinity.
  void check_finite() const {
    if (not_finite_.empty()) return;
    std::string list;
    for (const std::string& name : not_finite_) {
      const auto found = std::ranges::find_if(
          stored_, [&](const auto& entry) { return entry.second.tensor.name == name; });
      const safetensors::Stored& stored = found == stored_.end() ? head_ : found->second;
      list += fmt::format("{}'{}' in {}", list.empty() ? "" : ", ", name,
                          (fs::path(path_) / stored.file).string());
    }
    throw EngineError(
        ExitCode::kUnusable,
        fmt::format("weights that are not finite numbers (NaN or infinity): {}", list),
        "the model was damaged or had diverged when it was saved: take another copy");
  }

  // Whether head and embedding hold the same in elements [begin, end).
  void compare(const safetensors::Stored& embedding, std::int64_t begin, std::int64_t end) {
    std::vector<double> first, second;
    for (std::int64_t at = begin; at < end; at += kPiece) {
      const std::int64_t stop = std::min(at + kPiece, end);
      for (auto* values : {&first, &second}) {
        values->resize(static_cast<std::size_t>(stop - at));
        read(values == &first ? embedding : head_, at, stop, DType::kFloat64,
             reinterpret_cast<std::byte*>(values->data()));
      }
      if (std::memcmp(first.data(), second.data(), first.size() * sizeof(double)) != 0)
        throw EngineError(
            ExitCode::kUnusable,
            fmt::format("{}: '{}' and '{}' hold different values, but config.json ties them", path_,
                        embedding.tensor.name, head_.tensor.name),
            "set tie_word_embeddings to false in config.json if the model has a head of its own, "
            "or leave the head out of the weights");
    }
  }

 private:
  const InFile& file(const std::string& name) {
    const auto found = files_.find(name);
    if (found != files_.end()) return found->second;
    return files_.emplace(name, InFile((fs::path(path_) / name).string())).first->second;
  }

  std::string path_;
  std::map<std::string, InFile> files_;
  safetensors::Import import_;
  std::map<std::string, safetensors::Stored> stored_;  // by parameter
  safetensors::Stored head_;
  std::set<std::string> not_finite_;  // tensors
  std::vector<std::byte> buffer_;
};

// Each rank compares a share.
void compare_tied(Folder& folder, const model::Architecture& architecture,
                  const comm::Communicator& world) {
  const auto& embedding =
      architecture
          .parameters[static_cast<std::size_t>(architecture.layers.front().parameters.front())];
  const std::int64_t all = embedding.num_elements();
  const std::int64_t share = all / world.size() + 1;
  const std::int64_t begin = std::min(all, share * world.rank());
  folder.compare(folder.stored(embedding.name), begin, std::min(all, begin + share));
}

}  // namespace

void load_safetensors(const std::string& folder, const model::Architecture& architecture,
                      std::span<const TensorItem> items, comm::Communicator& world) {
  std::optional<Folder> files;
  together(world, [&] { files.emplace(folder, architecture); });
  if (files->has_tied_copy()) together(world, [&] { compare_tied(*files, architecture, world); });
  together(world, [&] {
    for (const TensorItem& item : items) {
      const dcp::Box part = item.box();
      for (const auto& run :
           model::runs_of_whole({item.shape, part.offsets, part.sizes}, item.begin, item.end))
        files->read(files->stored(item.key), run.begin, run.end, item.dtype,
                    static_cast<std::byte*>(item.data) + run.place * size_of(item.dtype));
    }
    files->check_finite();
  });
}

}  // namespace ptrain::checkpoint
