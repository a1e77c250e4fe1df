#include "launcher/recipe/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/hash.h"
#include "core/data/sentencepiece_facts.h"
#include "core/recipe/json.h"
#include "core/recipe/read.h"
#include "launcher/base/file.h"
#include "launcher/recipe/check.h"
#include "launcher/recipe/hf_folder.h"
#include "launcher/recipe/override.h"
#include "launcher/recipe/resolve.h"
#include "launcher/recipe/yaml.h"

namespace ptrain::recipe {
namespace {

using Kind = Node::Kind;
using Violations = std::vector<Violation>;

// A fault of the document itself, such as an unknown key at its top, covers the top alone.
bool is_within(const std::string& path, const std::string& section) {
  if (section.empty()) return path.find('.') == std::string::npos;
  return path == section || path.starts_with(section + ".");
}

// Whether one of the rule's fields has no good value of its own, so that the rule means nothing.
bool is_moot(const Breach& breach, const Violations& violations) {
  return std::any_of(breach.paths.begin(), breach.paths.end(), [&](const std::string& path) {
    return std::any_of(violations.begin(), violations.end(), [&](const Violation& violation) {
      return is_within(path, violation.path) || is_within(violation.path, path);
    });
  });
}

// Whether the file or folder that gives the fields of `model` gave none.
bool lacks_model(const Violations& violations) {
  return std::ranges::any_of(violations, [](const Violation& violation) {
    return violation.path == "model.hf" || violation.path == "model.file";
  });
}

bool is_of_model(const Breach& breach) {
  return std::ranges::any_of(breach.paths,
                             [](const std::string& path) { return is_within(path, "model"); });
}

void add_breaches(const Node& root, const Recipe& recipe, Violations& violations) {
  const bool has_model = !lacks_model(violations);
  for (const Breach& breach : check(recipe)) {
    if (is_moot(breach, violations) || (!has_model && is_of_model(breach))) continue;
    const std::string& path = breach.paths.front();
    violations.push_back({place_of(root, path), path, breach.message});
  }
}

// Puts the fields of the file named by `model.file` under those of the recipe. False when the file
// gave no fields, so that nobody knows what is missing.
bool merge_model(Node& root, const FindModel& find_model, Violations& violations) {
  Node* model = root.child("model");
  const Node* file = model == nullptr ? nullptr : model->child("file");
  if (file == nullptr || file->kind != Kind::kScalar || file->text.empty()) return true;
  const Result<NamedText> found = find_model(file->text);
  if (!found) {
    violations.push_back({file->place, "model.file", found.error().message});
    return false;
  }
  Violations faults;
  Node parts = parse_yaml(found->text, found->path, faults);
  if (parts.kind != Kind::kMapping && parts.kind != Kind::kBroken) {
    faults.push_back({parts.place, "", "expected a mapping with the fields of model"});
  }
  for (Violation& fault : faults) {
    fault.path = "model";
    violations.push_back(std::move(fault));
  }
  if (parts.kind != Kind::kMapping) return false;
  for (Node& part : parts.children) {
    if (part.key == "file") {
      violations.push_back({part.key_place, "model.file", "a model file may not name another"});
    } else if (model->child(part.key) == nullptr) {
      model->children.push_back(std::move(part));
    }
  }
  return true;
}

Result<NamedText> find_model_file(const std::string& folder, const std::string& file) {
  const std::string beside = (std::filesystem::path(folder) / file).lexically_normal().string();
  const std::string models = installed_path("configs/models");
  const std::string shipped = (std::filesystem::path(models) / file).lexically_normal().string();
  for (const std::string& path : {beside, models.empty() ? beside : shipped}) {
    if (!is_regular_file(path)) continue;
    PTRAIN_TRY(std::string text, read_file(path, kMostYamlBytes));
    return NamedText{path, std::move(text)};
  }
  const bool is_one = models.empty() || shipped == beside;
  return fail(ExitCode::kUsage, fmt::format("there is no such file as {}{}", shown(beside),
                                            is_one ? "" : " or " + shown(shipped)));
}

}  // namespace

Result<Recipe> read_recipe_text(const NamedText& file, const std::vector<std::string>& overrides,
                                const FindModel& find_model, std::vector<std::string>* notes,
                                const FindTokenizer& find_tokenizer) {
  Violations violations;
  Node root = parse_yaml(file.text, file.path, violations);
  for (const std::string& override_text : overrides) {
    apply_override(root, override_text, violations);
  }
  HfModel hf = read_hf_model(root, find_model, violations);
  const bool model_is_known = hf.is_named || merge_model(root, find_model, violations);
  Reading reading;
  if (root.kind != Kind::kBroken) {
    reading = read_document(root, model_is_known && !hf.is_named ? "" : "model.");
    violations.insert(violations.end(), reading.violations.begin(), reading.violations.end());
  }
  if (hf.model) reading.recipe.model = std::move(*hf.model);
  if (notes != nullptr) *notes = std::move(hf.warnings);
  if (root.kind == Kind::kMapping) add_breaches(root, reading.recipe, violations);
  if (find_tokenizer) settle_tokenizer(root, find_tokenizer, reading.recipe, violations);
  if (!violations.empty()) return tl::unexpected(report("the recipe", std::move(violations)));
  return resolve(std::move(reading.recipe));
}

std::string identity_of(const Recipe& recipe) {
  nlohmann::json fields = to_json(recipe);  // sorts its keys
  fields["model"].erase("file");
  fields["cluster"].erase("slurm");
  return hash128_hex(fields.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

Result<Recipe> override_recipe(const Recipe& recipe, const std::vector<std::string>& overrides) {
  nlohmann::json fields = to_json(recipe);                                  // JSON is YAML
  for (const char* source : {"file", "hf"}) fields["model"].erase(source);  // its fields are there
  for (auto& shape : fields["shapes"]) shape.erase("tokens");
  const FindModel no_file = [](const std::string&) -> Result<NamedText> {
    return fail(ExitCode::kUsage, "the model of a run is settled; override its fields");
  };
  PTRAIN_TRY(Recipe changed,
             read_recipe_text({"the run's recipe", fields.dump(1)}, overrides, no_file));
  changed.model.file = recipe.model.file;
  changed.model.hf = recipe.model.hf;
  return changed;
}

Result<LoadedRecipe> read_recipe(const std::string& path, const std::vector<std::string>& overrides,
                                 const std::string& folder) {
  LoadedRecipe loaded;
  PTRAIN_TRY(loaded.text, read_file(path, kMostYamlBytes));
  loaded.folder = folder.empty() ? std::filesystem::path(absolute_path(path)).parent_path().string()
                                 : absolute_path(folder);
  const FindModel find_model = [&](const std::string& file) {
    return find_model_file(loaded.folder, file);
  };
  const FindTokenizer find_tokenizer = [&](const std::string& file) {
    const auto beside = std::filesystem::path(loaded.folder) / file;
    return read_file(beside.lexically_normal().string(), data::kMostSentencePieceBytes);
  };
  PTRAIN_TRY(loaded.recipe, read_recipe_text({path, loaded.text}, overrides, find_model,
                                             &loaded.notes, find_tokenizer));
  loaded.hash = identity_of(loaded.recipe);
  return loaded;
}

}  // namespace ptrain::recipe
