#include "engine/checkpoint/tokenizer_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace ptrain::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNames[] = {"tokenizer.json",     "tokenizer_config.json",
                                  "tokenizer.model",    "special_tokens_map.json",
                                  "added_tokens.json",  "vocab.json",
                                  "merges.txt",         "chat_template.jinja",
                                  "chat_template.json", "generation_config.json"};
constexpr std::uintmax_t kMostBytes = std::uintmax_t{256} << 20;

// Links are followed, as the cache of Hugging Face needs; the names are ours, not the folder's.
void add(const fs::path& path, const std::string& name, std::vector<TokenizerFile>& out) {
  std::error_code error;
  if (!fs::is_regular_file(path, error) || fs::file_size(path, error) > kMostBytes || error) return;
  if (std::ranges::find(out, name, &TokenizerFile::name) == out.end())
    out.push_back({path.string(), name});
}

}  // namespace

std::vector<TokenizerFile> tokenizer_files(const recipe::Recipe& recipe,
                                           const std::string& recipe_folder) {
  std::vector<TokenizerFile> out;
  if (recipe.data.tokenizer == "byte") return out;
  const fs::path given = recipe.data.tokenizer_file;
  if (!given.empty() && (given.is_absolute() || !recipe_folder.empty()))
    add(fs::path(recipe_folder) / given, "tokenizer.model", out);
  if (!recipe.model.hf.empty())
    for (const char* name : kNames) add(fs::path(recipe.model.hf) / name, name, out);
  return out;
}

std::string missing_tokenizer(const recipe::Recipe& recipe,
                              const std::vector<TokenizerFile>& files) {
  const std::string& named =
      recipe.data.tokenizer_file.empty() ? recipe.model.hf : recipe.data.tokenizer_file;
  if (recipe.data.tokenizer == "byte" || named.empty()) return {};
  const auto encodes = [](const TokenizerFile& file) {
    return file.name == "tokenizer.json" || file.name == "tokenizer.model" ||
           file.name == "vocab.json";
  };
  if (std::ranges::any_of(files, encodes)) return {};
  return fmt::format("no tokenizer was found in {}: copy the model's own into the folder", named);
}

}  // namespace ptrain::checkpoint
