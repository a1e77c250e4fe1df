// The search by bounds: what it finds is what simulating every layout finds, and no bound is above
// what it bounds.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "core/schedule/catalogue.h"
#include "core/schedule/csv.h"
#include "launcher/plan/enumerate.h"
#include "launcher/plan/evaluate.h"
#include "launcher/plan/explain.h"
#include "launcher/plan/least_bytes.h"
#include "launcher/plan/least_time.h"
#include "launcher/plan/order.h"
#include "launcher/plan/plan.h"
#include "tests/support/small_model.h"

namespace ptrain::plan {
namespace {

constexpr std::int64_t kGib = std::int64_t{1} << 30;

// A model on some ranks, with what a search of it needs.
struct Problem {
  Problem(const std::string& family, int num_ranks, int ranks_per_node, std::int64_t rows)
      : model(support::small_model(family)) {
    model.num_hidden_layers = 5;
    model.vocab_size = 64;
    if (family == "qwen3_moe") model.num_experts = 8;
    architecture = *model::make_architecture(model, DType::kFloat32);
    shape.name = "only";
    shape.sequence = 32;
    shape.global_batch_tokens = rows * shape.sequence;
    cluster = {"nodes", {}, cluster::default_figures(), cluster::default_link()};
    cluster.nodes.assign(static_cast<std::size_t>(num_ranks / ranks_per_node),
                         {"n", ranks_per_node, 8 * kGib});
    placement = {num_ranks, ranks_per_node, 1, 1.0, num_ranks > ranks_per_node};
  }
  SearchInput input() const {
    return {architecture, shape, fixed, cluster, placement, {0.02, 16.5}};
  }
  Space space() const {
    Space out{placement.num_ranks, shape.global_batch_tokens / shape.sequence, fixed};
    out.shared_window = placement.shares_memory();
    out.architecture = &architecture;
    out.sequence = shape.sequence;
    return out;
  }

  recipe::Model model;
  model::Architecture architecture;
  recipe::Shape shape;
  recipe::Parallel fixed;
  cluster::Cluster cluster;
  Placement placement;
};

// On one node, where communication takes the core that computes, and on several, where it does not.
std::vector<Problem> problems() {
  std::vector<Problem> all;
  for (const char* family : {"llama", "gpt2", "qwen3_moe", "deepseek_v3"}) {
    all.emplace_back(family, 2, 2, 4);
    all.emplace_back(family, 4, 4, 8);
    all.emplace_back(family, 4, 1, 8);
    all.emplace_back(family, 8, 2, 8);
  }
  return all;
}

struct Bounds {
  double seconds = 0;
  std::int64_t bytes = 0;
};

Bounds bounds_of(const SearchInput& input, const mesh::Layout& layout) {
  const Sample sample = sample_of(input.architecture);
  const auto cut = cut_sample(sample, layout);
  StashCounts counts;
  return {LeastTime(input, *cut).of(layout), LeastBytes(input, *cut, counts).of(layout)};
}

// Every so many of the legal layouts, so that each problem has a hundred.
TEST(Bounds, AreNeverAboveWhatIsSimulated) {
  for (const Problem& problem : problems()) {
    const SearchInput input = problem.input();
    const auto legal = enumerate(problem.space()).legal;
    double tightest = 0;
    for (std::size_t i = 0; i < legal.size(); i += 1 + legal.size() / 100) {
      const auto candidate = evaluate(input, legal[i]);
      ASSERT_TRUE(candidate) << candidate.error().message;
      const Bounds least = bounds_of(input, legal[i]);
      const double step_s = candidate->predicted.step_s;
      EXPECT_LE(least.seconds, step_s * (1 + 1e-9))
          << problem.model.family << " " << name_of(legal[i]);
      EXPECT_LE(least.bytes, total_bytes(candidate->bytes))
          << problem.model.family << " " << name_of(legal[i]);
      tightest = std::max(tightest, least.seconds / step_s);
    }
    EXPECT_GT(tightest, 0.95) << problem.model.family;  // or it would rule out nothing
  }
}

// A pipeline of three ranks with stages that differ, 60 micro-batches: what is carried on from 18
// or 9 is what all of them take, as a file with the same order has them simulated.
TEST(Evaluate, CarriesPipelinesOnAsIfAllWereSimulated) {
  Problem problem("deepseek_v3", 3, 1, 60);
  const SearchInput input = problem.input();
  for (const auto& [name, num_virtual] : {std::pair{"1f1b", 1}, std::pair{"zb_h1", 1},
                                          std::pair{"interleaved_1f1b", 2}, std::pair{"zb_v", 2}}) {
    mesh::Layout layout{.pp = 3, .num_virtual = num_virtual, .schedule = name};
    layout.num_micro_batches = 60;
    layout.stage_layers = num_virtual == 1 ? std::vector{1, 4, 2} : std::vector{1, 2, 1, 1, 1, 1};
    mesh::Layout whole = layout;
    const schedule::Problem order{
        .num_ranks = 3, .num_virtual = num_virtual, .num_micro_batches = 60, .costs = {}};
    whole.schedule.clear();
    whole.schedule_csv = schedule::to_csv(*schedule::make(name, order));
    const auto carried = evaluate(input, layout), simulated = evaluate(input, whole);
    ASSERT_TRUE(carried) << carried.error().message;
    ASSERT_TRUE(simulated) << simulated.error().message;
    EXPECT_LT(carried->num_actions, simulated->num_actions / 2);
    EXPECT_NEAR(carried->predicted.step_s, simulated->predicted.step_s,
                1e-6 * simulated->predicted.step_s)
        << name;
    EXPECT_EQ(carried->bytes, simulated->bytes) << name;
  }
}

// Simulates every layout.
std::vector<Candidate> rank_every(const Problem& problem) {
  const SearchInput input = problem.input();
  std::vector<Candidate> all;
  for (const mesh::Layout& layout : enumerate(problem.space()).legal) {
    auto candidate = evaluate(input, layout);
    if (candidate && total_bytes(candidate->bytes) <= rank_memory(input))
      all.push_back(std::move(*candidate));
  }
  rank_all(all, rank_memory(input));
  return all;
}

TEST(Search, FindsWhatSimulatingEveryLayoutFinds) {
  for (Problem& problem : problems()) {
    if (problem.placement.num_ranks > (problem.model.family == "llama" ? 4 : 2)) continue;
    for (const std::int64_t memory : {8 * kGib, 147 * kGib / 1024}) {
      for (auto& node : problem.cluster.nodes)
        node.memory_bytes = memory * problem.placement.ranks_per_node;
      const auto every = rank_every(problem);
      const auto found = search(problem.input());
      ASSERT_TRUE(found) << found.error().message;
      ASSERT_EQ(found->ranked.empty(), every.empty()) << problem.model.family << memory;
      EXPECT_EQ(found->effort.left, 0);
      if (every.empty()) continue;
      EXPECT_EQ(name_of(found->ranked[0].layout), name_of(every[0].layout))
          << problem.model.family << " " << memory;
      EXPECT_EQ(found->ranked[0], every[0]);
    }
  }
}

// Of these three an axis more saves 4 per cent, which is not worth its while, and two save 11.
TEST(Search, TakesAnotherAxisOnlyWhereItSavesEnough) {
  std::vector<Candidate> all(3);
  all[0].layout.dp = all[1].layout.tp = all[2].layout.pp = 2;
  all[2].layout.tp = 2;
  all[0].predicted.step_s = 1;
  all[1].predicted.step_s = 0.96;
  all[2].predicted.step_s = 0.92;
  rank_all(all, kGib);
  EXPECT_EQ(all[0].layout.dp, 2);
  all[0].predicted.step_s = 1.2;
  rank_all(all, kGib);
  EXPECT_EQ(all[0].layout.dp, 1);
}

// The parameters of all layers are those of their likes.
TEST(Sample, HasOneLayerOfEachKind) {
  for (const char* family : {"llama", "gpt2", "gemma3", "qwen3_moe", "deepseek_v3"}) {
    recipe::Model model = support::small_model(family);
    if (std::string(family) != "gemma3") model.num_hidden_layers = 7;
    const auto whole = *model::make_architecture(model, DType::kBFloat16);
    const Sample sample = sample_of(whole);
    std::map<int, std::int64_t> elements;
    for (const auto& parameter : sample.architecture.parameters)
      elements[sample.architecture.groups[static_cast<std::size_t>(parameter.group)].layer] +=
          parameter.num_elements();
    std::int64_t sum = 0;
    for (const int like : sample.likes) sum += elements[like];
    EXPECT_EQ(sum, whole.num_parameters()) << family;
    const std::size_t kinds = family == std::string("deepseek_v3") ? 4 : 3;
    if (family != std::string("gemma3") && family != std::string("qwen3_moe")) {
      EXPECT_EQ(sample.architecture.layers.size(), kinds) << family;
    }
  }
}

TEST(Search, SaysWhatItLeftForWantOfTime) {
  const Problem problem("llama", 4, 4, 8);
  SearchInput input = problem.input();
  input.most_actions = 1;
  const auto found = search(input);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->ranked.size(), 1U);  // the first that was simulated fits
  EXPECT_EQ(found->effort.simulated, 1);
  EXPECT_GT(found->effort.left, 0);
  const std::string text = how_searched(found->effort);
  EXPECT_NE(text.find("left for want of time"), std::string::npos) << text;
  EXPECT_EQ(text.find("for certain"), std::string::npos) << text;
}

// A few blocks of a model of billions, since a search takes as long for all of them.
TEST(Search, OfAHundredRanksTakesSeconds) {
  PlanInput input;
  input.recipe.name = "large";
  input.recipe.model.hidden_size = 4096;
  input.recipe.model.intermediate_size = 14336;
  input.recipe.model.num_hidden_layers = 32;
  input.recipe.model.num_attention_heads = 32;
  input.recipe.model.num_key_value_heads = 8;
  input.recipe.model.vocab_size = 128256;
  recipe::Shape shape;
  shape.name = "only";
  shape.sequence = 4096;
  shape.global_batch_tokens = 512 * shape.sequence;
  shape.steps = 1;
  input.recipe.shapes = {shape};
  input.recipe.cluster.nodes = 16;
  input.cluster = {"nodes", {}, cluster::default_figures(), cluster::default_link()};
  input.cluster.nodes.assign(16, {"n", 8, 512 * kGib});
  const auto start = std::chrono::steady_clock::now();
  const auto planning = plan_recipe(input);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  ASSERT_TRUE(planning) << planning.error().message;
  EXPECT_EQ(planning->plan.ranks.size(), 128U);
  EXPECT_EQ(planning->rankings[0].effort.left, 0);
  EXPECT_LT(took.count(), 100);
}

}  // namespace
}  // namespace ptrain::plan
