#include <gtest/gtest.h>

#include "core/schedule/catalogue.h"
#include "core/schedule/diagram.h"

namespace ptrain::schedule {
namespace {

struct Drawn {
  Schedule schedule;
  Simulation simulation;
};

Drawn draw(std::string_view name, const Problem& problem) {
  const auto schedule = make(name, problem);
  return {*schedule, *simulate(*schedule, uniform_timing(*schedule, problem.costs))};
}

TEST(Diagram, NamesCellsOverTime) {
  const auto [schedule, simulation] =
      draw("1f1b", {.num_ranks = 2, .num_virtual = 1, .num_micro_batches = 2, .costs = {}});
  EXPECT_EQ(diagram(schedule, simulation, 80),
            "   0  F0 F1       B0       B1\n"
            "   1     F0 B0    F1 B1\n");
}

TEST(Diagram, HasLettersWhereNamesDoNotFit) {
  const auto [schedule, simulation] =
      draw("1f1b", {.num_ranks = 2, .num_virtual = 1, .num_micro_batches = 2, .costs = {}});
  EXPECT_EQ(diagram(schedule, simulation, 9),
            "   0  FF..BB.BB\n"
            "   1  .FBBFBB..\n");
}

TEST(Diagram, NamesStagesWhereARankHasSeveral) {
  const auto [schedule, simulation] =
      draw("zb_v", {.num_ranks = 1, .num_virtual = 2, .num_micro_batches = 1, .costs = {}});
  EXPECT_EQ(diagram(schedule, simulation, 80), "   0  0F0 1F0 1I0 1W0 0I0 0W0\n");
}

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t number = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++number;
  return number;
}

TEST(Svg, HasABoxForEachCellAndEscapesTheName) {
  const auto [schedule, simulation] =
      draw("zb_h1", {.num_ranks = 2, .num_virtual = 1, .num_micro_batches = 3, .costs = {}});
  const std::string svg = to_svg("<script>&\"'", schedule, simulation);
  EXPECT_EQ(count(svg, "<title>"), 2u * 3 * 3 + 4);  // and those of the legend
  EXPECT_EQ(count(svg, "<script>"), 0u);
  EXPECT_NE(svg.find("&#60;script&#62;&#38;&#34;&#39;"), std::string::npos);
  EXPECT_NE(svg.find("<title>1I2: 7 to 8</title>"), std::string::npos);
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

}  // namespace
}  // namespace ptrain::schedule
