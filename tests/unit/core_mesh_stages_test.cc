#include "core/mesh/stages.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ptrain::mesh {
namespace {

Layout pipeline(int pp, int num_virtual, const std::string& schedule = "1f1b") {
  Layout layout;
  layout.pp = pp;
  layout.num_virtual = num_virtual;
  layout.schedule = schedule;
  return layout;
}

TEST(StagesTest, CountsOfTheLayoutAndEvenOnes) {
  Layout layout = pipeline(2, 2);
  const std::vector<StageLayers> even = {{0, 2}, {2, 4}, {4, 5}, {5, 6}};
  EXPECT_EQ(*layers_of_stages(layout, 6), even);
  layout.stage_layers = {1, 1, 1, 3};
  EXPECT_EQ(layers_of_stages(layout, 6)->back(), (StageLayers{3, 6}));
  layout.stage_layers = {1, 1, 1};
  EXPECT_FALSE(layers_of_stages(layout, 6));
  layout.stage_layers = {3, 0, 1, 2};
  EXPECT_FALSE(layers_of_stages(layout, 6));
}

TEST(StagesTest, RanksOfNamesAndFiles) {
  EXPECT_EQ(*ranks_of_stages(pipeline(2, 2, "hanayo")), (std::vector<int>{0, 1, 1, 0}));
  EXPECT_EQ(*ranks_of_stages(pipeline(2, 1, "zb_h1_2bp")), (std::vector<int>{0, 1}));
  Layout file = pipeline(2, 1, "");
  file.schedule_csv = "1F0,1B0\n0F0,0B0\n";
  EXPECT_EQ(*ranks_of_stages(file), (std::vector<int>{1, 0}));
  file.num_virtual = 2;
  EXPECT_FALSE(ranks_of_stages(file));
  EXPECT_FALSE(ranks_of_stages(pipeline(2, 1, "nonsense")));
  EXPECT_EQ(ranks_of_stages(pipeline(2, 2, "chimera")).error().message,
            "schedule chimera holds the weights twice, which can be simulated, but not run");
  file.num_virtual = 1;
  file.schedule_csv = "0F0*0,1F1*1,0B0*0,1B1*1\n1F0*0,0F1*1,1B0*0,0B1*1\n";
  EXPECT_NE(ranks_of_stages(file).error().message.find("file holds the weights twice, which can"),
            std::string::npos)
      << ranks_of_stages(file).error().message;
}

}  // namespace
}  // namespace ptrain::mesh
