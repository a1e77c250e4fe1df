#include "engine/checkpoint/safetensors_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/dcp/import.h"
#include "core/model/hf_config.h"
#include "core/recipe/json.h"
#include "core/safetensors/header.h"
#include "core/safetensors/index.h"
#include "engine/base/engine_error.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/draft_folder.h"
#include "engine/checkpoint/file.h"
#include "engine/checkpoint/safetensors_narrow.h"

namespace ptrain::checkpoint {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kPiece = std::int64_t{8} << 20;  // elements in memory at once
// Those of a checkpoint's files: a fault point must lie on the way of a run.
constexpr fault::FilePoints kPoints{"save.file.create", "save.file.write", "save.file.sync",
                                    "save.file.close"};
constexpr const char* kFullDisk = "free some space there, or give --to a folder on another disk";
constexpr int kByteEndOfDocument = 256, kBytePadding = 257;

constexpr const char* kByteTokens =
    "# Tokens of this model\n\n"
    "The model was trained on bytes. Tokens 0 to 255 are the bytes of the text, 256 ends a\n"
    "document, 257 pads; tokens above are never used. There is no tokenizer file: encode a text\n"
    "by `list(text.encode())`, decode by `bytes(t for t in tokens if t < 256)`, and stop at 256.\n";

recipe::Recipe recipe_of(const Source& source) {
  constexpr const char* kRecipe = "ptrain.recipe";
  if (!source.metadata().values.contains(kRecipe))
    throw EngineError(
        ExitCode::kUnusable,
        fmt::format("{} does not tell its model: ptrain did not write it", source.folder()),
        "begin a run from it with `ptrain resume CHECKPOINT --recipe FILE`, and "
        "export a checkpoint of that run");
  Items items;
  items.values.push_back({kRecipe, nullptr});
  const Json text = source.load(items).front().value;
  const Json json =
      text.is_string() ? Json::parse(text.get<std::string>(), nullptr, false) : Json();
  auto recipe = recipe::from_json(json);
  if (!recipe) recipe.error().code = ExitCode::kUnusable;
  return value_or_throw(std::move(recipe));
}

// A parameter, the checkpoint's key for it, and its place in the files to be.
struct Part {
  std::string key;
  safetensors::Tensor tensor;
};
using Shard = std::vector<Part>;

class Exporter {
 public:
  Exporter(const Source& source, const ExportTarget& target)
      : source_(source),
        target_(target),
        dtype_(export_dtype(target.dtype)),
        recipe_(recipe_of(source)) {}

  Exported run() {
    const model::Architecture architecture =
        value_or_throw(model::make_architecture(recipe_.model, DType::kFloat32));
    const std::string config = config_of(architecture);
    const std::vector<Shard> shards = shards_of(architecture);
    const DraftFolder draft(target_.folder);
    for (std::size_t i = 0; i < shards.size(); ++i)
      write_shard(draft.file(file_name(i, shards.size())), shards[i]);
    if (shards.size() > 1) write_text(draft, safetensors::kIndexFile, index_of(shards));
    write_text(draft, "config.json", config);
    if (recipe_.data.tokenizer == "byte") write_text(draft, "TOKENS.md", kByteTokens);
    auto files = tokenizer_files(recipe_, target_.recipe_folder);
    std::string note = missing_tokenizer(recipe_, files);
    for (const TokenizerFile& one : files) write_text(draft, one.name, read_file(one.from));
    draft.publish();
    return {std::move(files), std::move(note)};
  }

 private:
  std::string config_of(const model::Architecture& architecture) const {
    Json config =
        Json::parse(value_or_throw(model::to_hf_config(architecture.config, DType::kFloat32)));
    for (const char* name : {"dtype", "torch_dtype"})
      if (config.contains(name)) config[name] = dtype_.torch;
    if (recipe_.data.tokenizer == "byte") {
      config["bos_token_id"] = nullptr;
      config["eos_token_id"] = kByteEndOfDocument;
      config["pad_token_id"] = kBytePadding;
    }
    return config.dump(2) + "\n";
  }

  // A new file where the next tensor would make one too large.
  std::vector<Shard> shards_of(const model::Architecture& architecture) const {
    const auto import = value_or_throw(dcp::find_parameters(source_.metadata(), architecture));
    std::vector<Shard> shards(1);
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < architecture.parameters.size(); ++i) {
      const auto& parameter = architecture.parameters[i];
      Part part{import.parameters[i].key, {parameter.name, dtype_.safetensors, parameter.shape}};
      const std::int64_t more = safetensors::whole_bytes(part.tensor);
      if (bytes > 0 && bytes + more > target_.shard_bytes) {
        shards.emplace_back();
        bytes = 0;
      }
      bytes += more;
      shards.back().push_back(std::move(part));
    }
    return shards;
  }

  static std::string file_name(std::size_t index, std::size_t of) {
    if (of == 1) return safetensors::kSingleFile;
    return fmt::format("model-{:05}-of-{:05}.safetensors", index + 1, of);
  }

  std::string index_of(const std::vector<Shard>& shards) const {
    safetensors::WeightMap weights;
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < shards.size(); ++i)
      for (const Part& part : shards[i]) {
        weights[part.tensor.name] = file_name(i, shards.size());
        bytes += safetensors::whole_bytes(part.tensor);
      }
    return safetensors::write_index(weights, bytes);
  }

  void write_shard(const std::string& path, const Shard& shard) {
    std::vector<safetensors::Tensor> tensors;
    std::int64_t bytes = 0;
    for (const Part& part : shard) {
      tensors.push_back(part.tensor);
      bytes += safetensors::whole_bytes(part.tensor);
    }
    const std::string start = safetensors::write_header(std::move(tensors), {{"format", "pt"}});
    OutFile file(path, std::ssize(start) + bytes, kPoints, kFullDisk);
    file.write(std::as_bytes(std::span(start)));
    for (const Part& part : shard) write_tensor(part, file);
    file.finish();
  }

  void write_tensor(const Part& part, OutFile& file) {
    const std::int64_t element = safetensors::element_bytes(part.tensor.dtype);
    const std::int64_t all = safetensors::whole_bytes(part.tensor) / element;
    for (std::int64_t at = 0; at < all; at += kPiece) {
      const std::int64_t count = std::min(kPiece, all - at);
      values_.resize(static_cast<std::size_t>(count));
      bytes_.resize(static_cast<std::size_t>(count * element));
      Items items;
      items.tensors.push_back(
          {part.key, DType::kFloat32, part.tensor.shape, at, at + count, values_.data()});
      source_.load(items);
      if (!narrow(values_, dtype_, bytes_.data()))
        throw EngineError(
            ExitCode::kUsage,
            fmt::format("'{}' has values above 65504, the largest of fp16", part.tensor.name),
            "export with --dtype bf16 or fp32");
      file.write(bytes_);
    }
  }

  static void write_text(const DraftFolder& draft, const std::string& name,
                         const std::string& text) {
    OutFile file(draft.file(name), static_cast<std::int64_t>(text.size()), kPoints, kFullDisk);
    file.write(std::as_bytes(std::span(text)));
    file.finish();
  }

  const Source& source_;
  const ExportTarget& target_;
  const ExportDType& dtype_;
  recipe::Recipe recipe_;
  std::vector<float> values_;
  std::vector<std::byte> bytes_;
};

}  // namespace

Exported export_checkpoint(const Source& source, const ExportTarget& target) {
  return Exporter(source, target).run();
}

}  // namespace ptrain::checkpoint
