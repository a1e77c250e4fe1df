#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/mesh/part.h"
#include "tests/support/small_model.h"

namespace ptrain::mesh {
namespace {

using model::Architecture;

// On one rank, whose parts are whole.
TEST(PartDTypes, MultipliesInTheDTypesOfItsLayers) {
  recipe::Model model = support::small_model("mixtral");
  const Architecture whole = *model::make_architecture(model, DType::kBFloat16);
  Layout layout;
  layout.layer_dtypes = {DType::kBFloat16, DType::kFloat32, DType::kBFloat16, DType::kFloat32};
  const Architecture part = *part_of(whole, layout, 0);
  EXPECT_EQ(part.parameters, whole.parameters);
  for (std::size_t i = 0; i < part.layers.size(); ++i) {
    EXPECT_EQ(part.layers[i].compute_dtype, layout.layer_dtypes[i]);
    EXPECT_EQ(part.layers[i].parameters, whole.layers[i].parameters);
    EXPECT_EQ(part.layers[i].groups, whole.layers[i].groups);
  }
  for (std::size_t i = 0; i < part.groups.size(); ++i) {
    const auto layer = static_cast<std::size_t>(whole.groups[i].layer);
    EXPECT_EQ(part.groups[i].compute_dtype, layout.layer_dtypes[layer]);
    EXPECT_EQ(part.groups[i].experts, whole.groups[i].experts);
  }
  // The input of its norm is of the stream; what its matrices read is not.
  const auto narrow =
      std::ranges::count(part.layers[1].stash, DType::kBFloat16, &model::StashTensor::dtype);
  EXPECT_EQ(narrow, 0);
  EXPECT_EQ(part.layers[2].stash, whole.layers[2].stash);
}

TEST(PartDTypes, RefusesDTypesThatDoNotSuit) {
  const auto refusal = [](bool tied, DType dtype, std::vector<DType> dtypes) {
    recipe::Model model = support::small_model("llama");
    model.tie_word_embeddings = tied;
    Layout layout;
    layout.layer_dtypes = std::move(dtypes);
    return part_of(*model::make_architecture(model, dtype), layout, 0).error().message;
  };
  constexpr auto kWide = DType::kFloat32, kNarrow = DType::kBFloat16;
  EXPECT_EQ(refusal(false, kWide, {kWide, kNarrow}), "layout: dtypes of 2 layers, but there are 4");
  EXPECT_EQ(refusal(true, kNarrow, {kWide, kWide, kNarrow, kNarrow}),
            "layout: a tied head in another dtype than the embedding");
  EXPECT_EQ(refusal(false, DType::kFloat64, std::vector(4, kWide)),
            "layout: a layer in float32, but sums in float64");
}

}  // namespace
}  // namespace ptrain::mesh
