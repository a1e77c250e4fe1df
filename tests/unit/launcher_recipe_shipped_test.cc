// The recipes that ptrain ships: each is read, and its model has as many parameters as were
// published.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "core/model/optimizer.h"
#include "launcher/recipe/reader.h"

namespace ptrain::recipe {
namespace {

namespace fs = std::filesystem;

// GPT-2: as counted by transformers of openai-community/gpt2. Llama 3.1: of the published
// checkpoints' indices (8.03, 70.55 and 405.85 billion on their model cards). Qwen3-30B-A3B and
// DeepSeek-V3: the sums of their published sizes (30.5 and 671 billion in their reports).
const std::map<std::string, std::int64_t> kPublished{{"gpt2-124m", 124'439'808},
                                                     {"llama-3.1-8b", 8'030'261'248},
                                                     {"llama-3.1-70b", 70'553'706'496},
                                                     {"llama-3.1-405b", 405'853'388'800},
                                                     {"qwen3-30b-a3b", 30'532'122'624},
                                                     {"deepseek-v3", 671'026'419'200}};

fs::path source() {
  const char* folder = std::getenv("PTRAIN_SOURCE_DIR");
  return folder == nullptr ? "." : folder;
}

TEST(ShippedRecipes, HaveThePublishedNumberOfParameters) {
  for (const auto& [name, published] : kPublished) {
    const auto loaded = read_recipe((source() / "recipes" / (name + ".yaml")).string(), {});
    ASSERT_TRUE(loaded) << name << ": " << loaded.error().message;
    EXPECT_EQ(loaded->recipe.name, name);
    const auto architecture = model::make_architecture(loaded->recipe);
    ASSERT_TRUE(architecture) << architecture.error().message;
    EXPECT_EQ(architecture->num_parameters(), published) << name;
  }
}

}  // namespace
}  // namespace ptrain::recipe
