#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/safetensors/import.h"
#include "core/safetensors/index.h"
#include "tests/support/small_llama.h"

namespace ptrain::safetensors {
namespace {

// A folder in memory, to be spoiled.
using Folder = std::map<std::string, std::string>;

Folder load(const std::string& name) {
  Folder folder;
  for (const auto& file : std::filesystem::directory_iterator(
           std::string(std::getenv("PTRAIN_SOURCE_DIR")) + "/tests/fixtures/safetensors/" + name)) {
    std::ostringstream text;
    text << std::ifstream(file.path(), std::ios::binary).rdbuf();
    folder[file.path().filename().string()] = text.str();
  }
  return folder;
}

Contents contents_of(const Folder& folder) {
  return read_contents({[&](const std::string& name) {
                          return folder.contains(name)
                                     ? static_cast<std::int64_t>(folder.at(name).size())
                                     : -1;
                        },
                        [&](const std::string& name, std::int64_t offset, std::int64_t bytes) {
                          return Result<std::string>(folder.at(name).substr(
                              static_cast<std::size_t>(offset), static_cast<std::size_t>(bytes)));
                        }});
}

// The model of the fixtures: see tests/fixtures/safetensors/make.py.
model::Architecture architecture(bool tied) { return support::small_llama(2, tied, 16); }

std::string why(const Folder& folder, bool tied) {
  const auto import = find_parameters(contents_of(folder), architecture(tied));
  if (import) return "";
  EXPECT_EQ(import.error().code, ExitCode::kUnusable);
  EXPECT_FALSE(import.error().hint.empty());
  return import.error().message;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void replace(std::string& text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
}

// One file of tensors whose data are zeros.
std::string file_of(const std::vector<Tensor>& tensors) {
  std::string file = write_header(tensors, {});
  for (const Tensor& tensor : tensors)
    file.append(static_cast<std::size_t>(whole_bytes(tensor)), '\0');
  return file;
}

std::vector<Tensor> tensors_of(const model::Architecture& architecture) {
  std::vector<Tensor> tensors;
  for (const auto& parameter : architecture.parameters)
    tensors.push_back({parameter.name, "BF16", parameter.shape});
  return tensors;
}

TEST(SafetensorsImport, FindsWhatTransformersSaved) {
  EXPECT_EQ(why(load("llama_tied"), true), "");
  EXPECT_EQ(why(load("llama_free_sharded"), false), "");
  const Contents contents = contents_of(load("llama_free_sharded"));
  EXPECT_EQ(contents.tensors.at("lm_head.weight").file, "model-00003-of-00003.safetensors");
  EXPECT_EQ(contents.tensors.size(), 21u);
}

TEST(SafetensorsImport, ListsAllThatIsWrongAtOnce) {
  Folder folder = load("llama_free_sharded");
  folder["model-00001-of-00003.safetensors"].resize(1000);  // within its header or data
  std::string& second = folder["model-00002-of-00003.safetensors"];
  replace(second, "model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.up_prox.weight");
  replace(second, R"("shape":[8,12])", R"("shape":[12,8])");
  folder.erase("model-00003-of-00003.safetensors");
  const std::string text = why(folder, false);
  EXPECT_TRUE(has(text, "model-00001-of-00003.safetensors: it is cut off")) << text;
  EXPECT_TRUE(has(text, "model-00003-of-00003.safetensors: it is missing")) << text;
  EXPECT_TRUE(has(text, "'model.layers.0.mlp.up_proj.weight' is missing")) << text;
  EXPECT_TRUE(has(text, "'model.layers.0.mlp.up_prox.weight' is no parameter")) << text;
  EXPECT_TRUE(has(text, "down_proj.weight' has the shape [12, 8] instead of [8, 12]")) << text;
  EXPECT_FALSE(has(text, "'lm_head.weight' is missing")) << text;  // its file is
}

TEST(SafetensorsImport, SeesFilesThatAreCutOrTooLong) {
  Folder folder = load("llama_tied");
  folder["model.safetensors"].pop_back();
  EXPECT_TRUE(has(why(folder, true), "is cut off: 6463 bytes instead of 6464"));
  folder["model.safetensors"] += "ab";
  EXPECT_TRUE(has(why(folder, true), "has bytes that are no tensor's"));
  folder["model.safetensors"].resize(20);
  EXPECT_TRUE(has(why(folder, true), "is cut off inside its header"));
  EXPECT_FALSE(has(why(folder, true), "is missing"));  // no word on what cannot be known
  EXPECT_TRUE(has(why({}, true), "holds neither model.safetensors nor"));
}

TEST(SafetensorsImport, SeesAnIndexThatDoesNotFitItsFiles) {
  Folder folder = load("llama_free_sharded");
  std::string& index = folder[kIndexFile];
  replace(index, R"("model.norm.weight": "model-00003-of-00003.safetensors")",
          R"("model.norm.weight": "model-00001-of-00003.safetensors")");
  EXPECT_TRUE(has(why(folder, false), "'model.norm.weight' is not in model-00001"));
  replace(index, "model-00001-of-00003.safetensors", "../model.safetensors");
  EXPECT_TRUE(has(why(folder, false), "elsewhere than in a file of this folder"));
}

TEST(SafetensorsImport, TakesNamesWithoutTheirFirstPart) {
  std::vector<Tensor> tensors = tensors_of(architecture(false));
  for (Tensor& tensor : tensors)
    if (tensor.name.starts_with("model.")) tensor.name.erase(0, 6);
  tensors.push_back({"layers.0.self_attn.rotary_emb.inv_freq", "F32", {2}});  // old transformers
  EXPECT_EQ(why({{kSingleFile, file_of(tensors)}}, false), "");
  tensors[3].name = "model." + tensors[3].name;
  EXPECT_NE(why({{kSingleFile, file_of(tensors)}}, false), "");
}

TEST(SafetensorsImport, PassesOverLayersThatPredictFurtherTokens) {
  std::vector<Tensor> tensors = tensors_of(architecture(false));
  tensors.push_back({"model.layers.9.enorm.weight", "BF16", {8}});
  EXPECT_TRUE(has(why({{kSingleFile, file_of(tensors)}}, false), "is no parameter"));
  tensors.push_back({"model.layers.9.eh_proj.weight", "BF16", {8, 16}});
  EXPECT_EQ(why({{kSingleFile, file_of(tensors)}}, false), "");
}

TEST(SafetensorsImport, KnowsTheTiedHead) {
  const auto tied = architecture(true);
  std::vector<Tensor> tensors = tensors_of(tied);
  tensors.push_back({"lm_head.weight", "BF16", {16, 8}});
  auto import = find_parameters(contents_of({{kSingleFile, file_of(tensors)}}), tied).value();
  EXPECT_EQ(import.tied_copy, "lm_head.weight");
  EXPECT_EQ(import.names[0], "model.embed_tokens.weight");
  tensors.erase(tensors.begin());  // safetensors.torch.save_model keeps the head of the two
  import = find_parameters(contents_of({{ kSingleFile, file_of(tensors) }}), tied).value();
  EXPECT_EQ(import.names[0], "lm_head.weight");
  EXPECT_EQ(import.tied_copy, "");
  tensors.back().shape = {8, 16};
  EXPECT_TRUE(has(why({{kSingleFile, file_of(tensors)}}, true), "has the shape [8, 16]"));
}

TEST(SafetensorsImport, RefusesWhatAreNoWeights) {
  std::vector<Tensor> tensors = tensors_of(architecture(false));
  tensors[1].dtype = "I32";
  tensors[2].dtype = "F8_E4M3";
  const std::string text = why({{kSingleFile, file_of(tensors)}}, false);
  EXPECT_TRUE(has(text, "is I32; weights are F32")) << text;
  EXPECT_TRUE(has(text, "is F8_E4M3; weights are F32")) << text;
}

// All of a quantiser in a line and with its own remedy, its scales unsaid, but not what else is
// odd.
TEST(SafetensorsImport, NamesQuantisedWeightsOnce) {
  std::vector<Tensor> tensors = tensors_of(architecture(false));
  for (std::size_t i = 1; i < tensors.size(); ++i) tensors[i].dtype = "F8_E4M3";
  tensors.push_back({"model.layers.0.self_attn.q_proj.weight_scale_inv", "F32", {1}});
  tensors.push_back({"unknown.weight", "F32", {1}});
  const auto import =
      find_parameters(contents_of({{kSingleFile, file_of(tensors)}}), architecture(false));
  ASSERT_FALSE(import);
  const std::string& text = import.error().message;
  EXPECT_TRUE(has(text, fmt::format("is F8_E4M3, as are {} more;", tensors.size() - 4))) << text;
  EXPECT_TRUE(has(text, "'unknown.weight' is no parameter of the model")) << text;
  EXPECT_EQ(std::ranges::count(text, '\n'), 2) << text;
  EXPECT_TRUE(has(import.error().hint, "quantised")) << import.error().hint;
}

Error refusal_of_only(const std::string& file) {
  return find_parameters(contents_of({{file, "x"}}), architecture(false)).error();
}

TEST(SafetensorsImport, SaysHowPickledWeightsAreSaved) {
  EXPECT_TRUE(has(refusal_of_only("pytorch_model.bin").message, "pytorch_model.bin,"));
  EXPECT_TRUE(has(refusal_of_only("pytorch_model.bin").hint, "save_pretrained"));
  EXPECT_TRUE(has(refusal_of_only("pytorch_model.bin.index.json").hint, "save_pretrained"));
}

TEST(SafetensorsIndex, ConfinesNamesOfFiles) {
  for (const char* good : {"model.safetensors", "a-00001-of-00002.safetensors"})
    EXPECT_TRUE(is_file_name(good)) << good;
  for (const char* bad : {"", ".", "..", "../a", "a/b", "/a", "a\\b", ".hidden", "a\nb"})
    EXPECT_FALSE(is_file_name(bad)) << bad;
  EXPECT_EQ(read_index(write_index({{"a", "x"}, {"b", "y"}}, 5)).value(),
            (WeightMap{{"a", "x"}, {"b", "y"}}));
  for (const char* bad : {"", "{}", "[]", R"({"weight_map":{}})", R"({"weight_map":{"a":1}})",
                          R"({"weight_map":{"a":"x","a":"y"}})"})
    EXPECT_FALSE(read_index(bad)) << bad;
}

}  // namespace
}  // namespace ptrain::safetensors
