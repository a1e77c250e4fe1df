#include <gtest/gtest.h>

#include "core/mesh/part.h"
#include "tests/support/small_model.h"

namespace ptrain::mesh {
namespace {

using model::Architecture;

// Four heads on two of keys and values: two ulysses ranks have one each, four share them.
TEST(PartContext, HeadsDivideOverUlyssesRanks) {
  const Architecture whole =
      *model::make_architecture(support::small_model("llama"), DType::kFloat64);
  Layout layout;
  for (const int ulysses : {1, 2, 4}) {
    layout.cp = 2 * ulysses;
    layout.ulysses = ulysses;
    const auto part = part_of(whole, layout, 2 * ulysses - 1);
    ASSERT_TRUE(part) << ulysses;
    EXPECT_EQ(part->ring, (model::AxisPlace{2, 1}));
    EXPECT_EQ(part->ulysses, (model::AxisPlace{ulysses, ulysses - 1}));
    EXPECT_EQ(part->parameters, whole.parameters);
  }
  layout.cp = layout.ulysses = 3;
  const auto refused = part_of(whole, layout, 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "layout: cp.ulysses is 3, which does not divide 4 attention heads of a rank");
  EXPECT_EQ(refused.error().hint, "the nearest that does is cp.ulysses 2");
  layout.cp = layout.ulysses = 4;
  layout.tp = 2;  // leaves two heads
  EXPECT_FALSE(part_of(whole, layout, 0));
}

}  // namespace
}  // namespace ptrain::mesh
