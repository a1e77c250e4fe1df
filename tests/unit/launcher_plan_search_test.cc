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
#include "launcher/plan/search_space.h"
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

// What a search knows of one input before it simulates.
struct AllBounds {
  explicit AllBounds(const SearchInput& input)
      : cuts(sample_of(input.architecture)),
        pipelines(cuts.likes()),
        time(input, cuts, pipelines),
        bytes(input, cuts, pipelines) {}

  Cuts cuts;
  Pipelines pipelines;
  LeastTime time;
  LeastBytes bytes;
};

// Every so many of the legal layouts, so that each problem has a hundred.
TEST(Bounds, AreNeverAboveWhatIsSimulated) {
  for (const Problem& problem : problems()) {
    const SearchInput input = problem.input();
    const auto legal = enumerate(problem.space()).legal;
    AllBounds bounds(input);
    double tightest = 0;
    for (std::size_t i = 0; i < legal.size(); i += 1 + legal.size() / 100) {
      const auto candidate = evaluate(input, legal[i]);
      ASSERT_TRUE(candidate) << candidate.error().message;
      const double least_s = bounds.time.of(legal[i]), step_s = candidate->predicted.step_s;
      EXPECT_LE(least_s, step_s * (1 + 1e-9)) << problem.model.family << " " << name_of(legal[i]);
      EXPECT_LE(bounds.bytes.of(legal[i]), program::total_bytes(candidate->bytes))
          << problem.model.family << " " << name_of(legal[i]);
      tightest = std::max(tightest, least_s / step_s);
    }
    EXPECT_GT(tightest, 0.95) << problem.model.family;  // or it would rule out nothing
  }
}

// What was found out for other layouts is taken for those that are alike in all that counts.
TEST(Bounds, DoNotDependOnWhatWasAskedBefore) {
  for (const Problem& problem : problems()) {
    const SearchInput input = problem.input();
    const auto legal = enumerate(problem.space()).legal;
    AllBounds bounds(input);
    for (std::size_t i = 0; i < legal.size(); i += 1 + legal.size() / 200) {
      AllBounds own(input);
      EXPECT_EQ(bounds.time.of(legal[i]), own.time.of(legal[i]))
          << problem.model.family << " " << name_of(legal[i]);
      EXPECT_EQ(bounds.bytes.of(legal[i]), own.bytes.of(legal[i]))
          << problem.model.family << " " << name_of(legal[i]);
    }
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
    EXPECT_LT(carried->num_actions, simulated->num_actions);
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
    if (candidate && program::total_bytes(candidate->bytes) <= rank_memory(input))
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
      EXPECT_EQ(found->effort.num_left, 0);
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
  input.most_work = 1;
  const auto found = search(input);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->ranked.size(), 1U);  // the first that was simulated fits
  EXPECT_EQ(found->effort.num_simulated, 1);
  EXPECT_GT(found->effort.num_left, 0);
  const std::string text = how_searched(found->effort);
  EXPECT_NE(text.find("left for want of time"), std::string::npos) << text;
  EXPECT_EQ(text.find("for certain"), std::string::npos) << text;
}

// However little it may do, it tries some layouts, and does the same again.
TEST(Search, DoesTheSameWorkAgain) {
  const Problem problem("qwen3_moe", 8, 2, 8);
  SearchInput input = problem.input();
  input.most_work = 2'000;
  const auto once = search(input), again = search(input);
  ASSERT_TRUE(once && again);
  EXPECT_FALSE(once->ranked.empty());
  EXPECT_EQ(once->ranked, again->ranked);
  EXPECT_EQ(once->effort, again->effort);
}

// What compiling takes is foreseen within a factor of two, so that a search keeps its bounds.
// But for what a step in a window takes once, which only counts where there are few micro-batches.
TEST(Search, ForeseesHowLongProgramsAre) {
  int num_checked = 0, num_in_pipelines = 0;
  for (const Problem& problem : problems()) {
    const SearchInput input = problem.input();
    const auto legal = enumerate(problem.space()).legal;
    AllBounds bounds(input);
    for (std::size_t i = 0; i < legal.size(); i += 1 + legal.size() / 40) {
      const mesh::Layout& layout = legal[i];
      const bool is_pipeline = layout.pp > 1;
      if (layout.num_micro_batches < (is_pipeline ? 4 : 2)) continue;
      if (!is_pipeline && layout.shared_window) continue;
      if (counted_micro_batches(layout) < layout.num_micro_batches) continue;
      const auto actions = static_cast<double>(evaluate(input, layout)->num_actions);
      EXPECT_GT(bounds.time.num_actions(layout), actions / 2) << name_of(layout);
      EXPECT_LT(bounds.time.num_actions(layout), actions * 2) << name_of(layout);
      num_checked += 1;
      num_in_pipelines += is_pipeline ? 1 : 0;
    }
  }
  EXPECT_GT(num_in_pipelines, 100);
  EXPECT_GT(num_checked - num_in_pipelines, 20);
}

// No number of rows divides over micro-batches of three, which a search finds out for each choice
// of degrees: without time it ends all the same.
TEST(Search, EndsWhereRulesRefuseEveryWayDown) {
  Problem problem("llama", 4, 1, 8);
  problem.fixed.micro_batch = 3;
  SearchInput input = problem.input();
  input.most_work = 1;
  const auto found = search(input);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_TRUE(found->ranked.empty());
  EXPECT_LT(found->effort.num_degrees_opened, found->effort.num_degrees);
  EXPECT_GT(found->effort.num_left, 0);
}

// Of more choices of degrees than are kept; a pipeline's stages are not chosen with them.
TEST(SearchSpace, CutsTheModelOnceForALayout) {
  const Problem problem("llama", 4, 1, 8);
  const SearchInput input = problem.input();
  SearchSpace space(input, recipe::Offload::kNone);
  int num_cut = 0;
  for (const mesh::Layout& layout : space.next(space.start()).legal) {
    if (layout.pp > 1) continue;
    const std::int64_t before = space.work();
    ASSERT_TRUE(space.parts_for(layout)) << name_of(layout);
    const std::int64_t once = space.work();
    EXPECT_GT(once, before) << name_of(layout);
    ASSERT_TRUE(space.parts_for(layout)) << name_of(layout);
    EXPECT_EQ(space.work(), once) << name_of(layout);
    num_cut += 1;
  }
  EXPECT_GT(num_cut, 9);
}

PlanInput large_input(int num_nodes, int cores, std::int64_t memory) {
  PlanInput input;
  input.recipe.name = "large";
  recipe::Shape shape;
  shape.name = "only";
  shape.sequence = 4096;
  shape.steps = 1;
  input.recipe.shapes = {shape};
  input.recipe.cluster.nodes = num_nodes;
  input.cluster = {"nodes", {}, cluster::default_figures(), cluster::default_link()};
  input.cluster.nodes.assign(static_cast<std::size_t>(num_nodes), {"n", cores, memory});
  return input;
}

double seconds_of(const PlanInput& input, Result<Planning>& planning) {
  const auto start = std::chrono::steady_clock::now();
  planning = plan_recipe(input);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// A few blocks of a model of billions, since a search takes as long for all of them.
TEST(Search, OfAHundredRanksTakesSeconds) {
  PlanInput input = large_input(16, 8, 512 * kGib);
  recipe::Model& model = input.recipe.model;
  model.hidden_size = 4096;
  model.intermediate_size = 14336;
  model.num_hidden_layers = 32;
  model.num_attention_heads = 32;
  model.num_key_value_heads = 8;
  model.vocab_size = 128256;
  input.recipe.shapes[0].global_batch_tokens = 512 * 4096;
  Result<Planning> planning;
  const double took_s = seconds_of(input, planning);
  ASSERT_TRUE(planning) << planning.error().message;
  EXPECT_EQ(planning->plan.ranks.size(), 128U);
  EXPECT_EQ(planning->rankings[0].effort.num_left, 0);
  EXPECT_LT(took_s, 100);
}

// DeepSeek-V3 (configs/models/deepseek-v3.yaml) on 64 nodes of 64 cores, 128 GiB each: tens of
// thousands of choices of degrees. It takes some seconds, and may take ten times as long here.
TEST(Search, OfFourThousandRanksAndHundredsOfExpertsEnds) {
  PlanInput input = large_input(64, 64, 64 * 128 * kGib);
  recipe::Model& model = input.recipe.model;
  model.family = "deepseek_v3";
  model.hidden_size = 7168;
  model.intermediate_size = 18432;
  model.moe_intermediate_size = 2048;
  model.num_hidden_layers = 61;
  model.num_attention_heads = 128;
  model.q_lora_rank = 1536;
  model.kv_lora_rank = 512;
  model.qk_nope_head_dim = 128;
  model.qk_rope_head_dim = 64;
  model.v_head_dim = 128;
  model.num_experts = 256;
  model.num_experts_per_tok = 8;
  model.n_shared_experts = 1;
  model.first_k_dense_replace = 3;
  model.n_group = 8;
  model.topk_group = 4;
  model.vocab_size = 129280;
  input.recipe.precision = recipe::Precision::kBFloat16;
  input.recipe.shapes[0].global_batch_tokens = 16384 * 4096;
  Result<Planning> planning;
  const double took_s = seconds_of(input, planning);
  ASSERT_TRUE(planning) << planning.error().message;
  const Effort& effort = planning->rankings[0].effort;
  EXPECT_EQ(planning->plan.ranks.size(), 4096U);
  EXPECT_GT(effort.num_degrees, 20'000);
  EXPECT_GT(effort.num_left, 0);
  EXPECT_LT(effort.work, 2 * kMostWork);
  EXPECT_NE(how_searched(effort).find("left for want of time"), std::string::npos);
  EXPECT_LT(took_s, 150);
}

}  // namespace
}  // namespace ptrain::plan
