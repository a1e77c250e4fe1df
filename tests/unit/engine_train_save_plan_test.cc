// What is in the files of all ranks, by the layout alone.

#include <gtest/gtest.h>

#include <cctype>
#include <cstdio>
#include <ctime>

#include "core/model/optimizer.h"
#include "engine/checkpoint/file_plan.h"
#include "engine/checkpoint/merge.h"
#include "engine/train/save_plan.h"
#include "tests/support/small_model.h"

namespace ptrain::train {
namespace {

using mesh::Layout;

Layout mix(int pp, int dp, int shard, int tp) {
  Layout layout;
  layout.pp = pp, layout.dp = dp, layout.shard = shard, layout.tp = tp;
  if (pp > 1) layout.schedule = "1f1b";
  return layout;
}

// Sizes of Llama 3.1 8B, AdamW.
model::Architecture eight_billions() {
  recipe::Recipe recipe;
  recipe::Model& model = recipe.model;
  model = support::small_model("llama");
  model.hidden_size = 4096;
  model.intermediate_size = 14336;
  model.num_hidden_layers = 32;
  model.num_attention_heads = 32;
  model.num_key_value_heads = 8;
  model.head_dim = 128;
  model.vocab_size = 128256;
  return *model::make_architecture(recipe);
}

// What the first rank does without a word from the others: merge() refuses it where any element of
// a tensor is in no file or in two.
std::vector<std::byte> metadata_of(const model::Architecture& whole, const Layout& layout) {
  SavePlan plan(whole, layout);
  std::vector<checkpoint::RankFile> files;
  for (int rank = 0; rank < layout.num_ranks(); ++rank) {
    auto planned = checkpoint::plan_file(plan.items_of(rank), rank);
    files.push_back({checkpoint::rank_file_name(rank), {}, std::move(planned.content)});
  }
  return dcp::write_metadata(checkpoint::merge(std::move(files)));
}

class FourThousandRanks : public testing::TestWithParam<Layout> {};

// A second of one core, and time tenfold in case the machine is slow or the build sanitized.
TEST_P(FourThousandRanks, ArePlannedInASecond) {
  const model::Architecture whole = eight_billions();
  ASSERT_EQ(GetParam().num_ranks(), 4096);
  const std::clock_t begin = std::clock();
  const auto bytes = metadata_of(whole, GetParam());
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  EXPECT_LT(seconds, 10);
  const auto metadata = dcp::read_metadata(bytes);
  ASSERT_TRUE(metadata) << metadata.error().message;
  std::size_t chunks = 0;
  for (const auto& [key, entry] : metadata->tensors) chunks += entry.chunks.size();
  EXPECT_EQ(metadata->tensors.size(), 4 * whole.parameters.size());  // two moments, a step
  std::printf("%s: %.2f s for %zu chunks, %zu bytes\n", mesh::to_string(GetParam()).c_str(),
              seconds, chunks, bytes.size());
}

INSTANTIATE_TEST_SUITE_P(Layouts, FourThousandRanks,
                         testing::Values(mix(8, 1, 64, 8), mix(4, 8, 16, 8), mix(1, 8, 512, 1)),
                         [](const auto& test) {
                           std::string name = mesh::to_string(test.param);
                           std::erase_if(name, [](char c) { return !std::isalnum(c); });
                           return name;
                         });

}  // namespace
}  // namespace ptrain::train
