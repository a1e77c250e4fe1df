// What `ptrain plan --json` tells of a layout.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <tuple>

#include "launcher/plan/report.h"

namespace ptrain::plan {
namespace {

using mesh::Layout;

nlohmann::json json_of(const Layout& layout) {
  Planning planning;
  Ranking& ranking = planning.rankings.emplace_back();
  ranking.ranked.emplace_back().layout = layout;
  run::ShapePlan& shape = planning.plan.shapes.emplace_back();
  shape.layout = layout;
  shape.predicted.classes.emplace_back();
  return to_json(planning)["shapes"][0]["ranked"][0];
}

// A field more does not compile, so that whoever adds it sees that programs must be told.
auto fields_of(Layout& layout) {
  auto& [dp, shard, cp, ulysses, tp, pp, num_virtual, schedule, schedule_csv, stage_layers,
         spread_embedding, spread_head, ep, etp, zero, micro_batch, num_micro_batches, recompute,
         stage_recompute, layer_dtypes, prefetch, offload, shared_window] = layout;
  return std::tie(dp, shard, cp, ulysses, tp, pp, num_virtual, schedule, schedule_csv, stage_layers,
                  spread_embedding, spread_head, ep, etp, zero, micro_batch, num_micro_batches,
                  recompute, stage_recompute, layer_dtypes, prefetch, offload, shared_window);
}

void change(bool& value) { value = !value; }
void change(int& value) { value += 1; }
void change(std::int64_t& value) { value += 1; }
void change(std::string& value) { value += "other"; }
void change(recipe::Recompute& value) { value = recipe::Recompute::kFull; }
void change(recipe::Offload& value) { value = recipe::Offload::kOptimizer; }
template <class T>
void change(std::vector<T>& values) {
  values.emplace_back();
}

// Each by a key of its own: the name of the layout does not count.
TEST(Report, TellsEveryFieldOfALayout) {
  nlohmann::json plain = json_of({});
  plain.erase("layout");
  constexpr std::size_t kNumFields =
      std::tuple_size_v<decltype(fields_of(std::declval<Layout&>()))>;
  [&]<std::size_t... field>(std::index_sequence<field...>) {
    const auto is_told = [&](std::size_t index, auto&& set) {
      Layout layout;
      set(layout);
      nlohmann::json changed = json_of(layout);
      changed.erase("layout");
      EXPECT_NE(changed, plain) << "field " << index;
    };
    (is_told(field, [](Layout& layout) { change(std::get<field>(fields_of(layout))); }), ...);
  }
  (std::make_index_sequence<kNumFields>());
}

TEST(Report, GivesListsByStageInTheWordsOfTheRecipe) {
  Layout layout{.pp = 2, .schedule = "1f1b", .stage_layers = {1, 3}, .spread_head = true};
  layout.stage_recompute = {recipe::Recompute::kNone, recipe::Recompute::kSelective};
  layout.layer_dtypes = {DType::kFloat32, DType::kBFloat16, DType::kBFloat16, DType::kBFloat16};
  const auto json = json_of(layout);
  EXPECT_EQ(json["stages"], nlohmann::json({1, 3}));
  EXPECT_EQ(json["stage_recompute"], nlohmann::json({"none", "selective"}));
  EXPECT_EQ(json["stage_dtype"], nlohmann::json({"fp32", "bf16"}));
  EXPECT_EQ(json["embedding"], "first_stage");
  EXPECT_EQ(json["head"], "all_stages");
}

// A stash of 111,638.5 MiB behind 3,576.8 MiB gathered, as DeepSeek-V3 has on thousands of ranks.
TEST(Report, KeepsLargeColumnsApart) {
  Planning planning;
  Candidate& candidate = planning.rankings.emplace_back().ranked.emplace_back();
  const auto set = [&](program::MemoryClass which, double mib) {
    candidate.bytes[static_cast<std::size_t>(which)] =
        Bytes{static_cast<std::int64_t>(mib * (1 << 20))};
  };
  set(program::MemoryClass::kGather, 3576.8);
  set(program::MemoryClass::kStash, 111638.5);
  planning.plan.shapes.emplace_back();
  EXPECT_NE(to_text(planning, false).find(" 3576.8 111638 "), std::string::npos);
}

}  // namespace
}  // namespace ptrain::plan
