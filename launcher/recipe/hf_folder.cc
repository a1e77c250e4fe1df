#include "launcher/recipe/hf_folder.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "core/model/architecture.h"
#include "core/model/hf_config.h"
#include "core/recipe/json.h"
#include "core/safetensors/import.h"
#include "launcher/base/file.h"

namespace ptrain::recipe {
namespace {

namespace fs = std::filesystem;

safetensors::Contents contents_of(const fs::path& folder) {
  return safetensors::read_contents(
      {[&](const std::string& name) {
         std::error_code error;
         if (!fs::is_regular_file(folder / name, error)) return std::int64_t{-1};
         return static_cast<std::int64_t>(fs::file_size(folder / name, error));
       },
       [&](const std::string& name, std::int64_t offset, std::int64_t bytes) {
         return read_part((folder / name).string(), offset, bytes);
       }});
}

}  // namespace

HfModel read_hf_model(const Node& root, const FindModel& find_model,
                      std::vector<Violation>& violations) {
  HfModel result;
  const Node* section = root.child("model");
  const Node* hf = section == nullptr ? nullptr : section->child("hf");
  if (hf == nullptr || hf->kind != Node::Kind::kScalar || hf->text.empty()) return result;
  result.is_named = true;
  for (const Node& field : section->children)
    if (field.key != "hf")
      violations.push_back({field.key_place, "model." + field.key,
                            "model.hf says it: leave it out, or change a copy of config.json"});
  const auto file = find_model(hf->text + "/config.json");
  if (!file) {
    violations.push_back(
        {hf->place, "model.hf",
         file.error().message + "; nothing is fetched: name a folder that was downloaded"});
    return result;
  }
  auto config = model::from_hf_config(file->text);
  if (!config) {
    const Error& error = config.error();
    violations.push_back({hf->place, "model.hf",
                          fmt::format("{}: {}{}", file->path, error.message,
                                      error.hint.empty() ? "" : " (" + error.hint + ")")});
    return result;
  }
  for (const Violation& fault : violations_of(config->model))
    violations.push_back(
        {hf->place, "model.hf", fmt::format("{}: {}: {}", file->path, fault.path, fault.message)});
  result.model = std::move(config->model);
  result.model->hf = fs::path(file->path).parent_path().string();
  result.warnings = std::move(config->warnings);
  return result;
}

Result<std::vector<std::string>> check_weights(const Recipe& recipe) {
  std::vector<std::string> notes;
  const std::string& folder = recipe.model.hf;
  if (folder.empty()) return notes;
  PTRAIN_TRY(const auto architecture, model::make_architecture(recipe.model, DType::kFloat32));
  auto import = safetensors::find_parameters(contents_of(folder), architecture);
  if (!import) {
    import.error().message = fmt::format("{}: {}", folder, import.error().message);
    return tl::unexpected(std::move(import.error()));
  }
  if (recipe.data.tokenizer == "byte" && is_regular_file(folder + "/tokenizer.json"))
    notes.push_back(
        fmt::format("{} has a tokenizer of its own, but data.tokenizer is byte: the "
                    "model gets other tokens than it knows",
                    folder));
  return notes;
}

}  // namespace ptrain::recipe
