#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>

#include "core/mesh/buffer_plan.h"
#include "core/mesh/part.h"
#include "core/mesh/stages.h"
#include "core/model/optimizer.h"
#include "core/model/slice.h"
#include "tests/support/small_model.h"

namespace ptrain::mesh {
namespace {

using model::Architecture;
using model::ParameterSpec;
using model::Role;

Architecture whole_of(const std::string& family, bool tied = false) {
  recipe::Model model = support::small_model(family);
  model.vocab_size = 64;
  model.tie_word_embeddings = tied;
  model.num_hidden_layers = 4;
  if (model.max_window_layers > 0) model.max_window_layers = 4;
  return *model::make_architecture(model, DType::kFloat64);
}

const ParameterSpec& named(const Architecture& part, const std::string& name,
                           std::size_t number = 0) {
  for (const ParameterSpec& parameter : part.parameters)
    if (parameter.name == name && number-- == 0) return parameter;
  throw std::runtime_error("no " + name);
}

Layout layout_of(int tp, int pp = 1, int num_virtual = 1, const char* schedule = "1f1b") {
  Layout layout;
  layout.tp = tp;
  layout.pp = pp;
  layout.num_virtual = num_virtual;
  if (pp > 1) layout.schedule = schedule;
  return layout;
}

// How often each element of each parameter is held, and how often it counts where a group's first
// replica is.
struct Cover {
  std::vector<int> held, counted;
};
std::map<std::string, Cover> cover_of(const Architecture& whole, const Layout& layout) {
  std::map<std::string, Cover> covers;
  for (const ParameterSpec& parameter : whole.parameters) {
    const auto elements = static_cast<std::size_t>(parameter.num_elements());
    covers[parameter.name] = {std::vector<int>(elements), std::vector<int>(elements)};
  }
  for (int rank = 0; rank < layout.num_ranks(); ++rank) {
    const auto part = part_of(whole, layout, rank);
    for (const ParameterSpec& parameter : part->parameters) {
      const auto& group = part->groups[static_cast<std::size_t>(parameter.group)];
      if (!is_first_replica(group, layout, rank)) continue;
      Cover& cover = covers.at(parameter.name);
      for (const auto& run : model::runs_of_whole(parameter, 0, parameter.num_elements()))
        for (auto i = static_cast<std::size_t>(run.begin); std::cmp_less(i, run.end); ++i) {
          ++cover.held[i];
          if (parameter.counts) ++cover.counted[i];
        }
    }
  }
  return covers;
}

// Copies of an element that tp neighbours hold, and one more of the group that a tied head reads
// on another stage.
void expect_covered(const Architecture& whole, const Layout& layout) {
  for (const auto& [name, cover] : cover_of(whole, layout)) {
    for (const int count : cover.counted) ASSERT_EQ(count, 1) << name << " " << to_string(layout);
    for (const int count : cover.held) ASSERT_GE(count, 1) << name;
  }
}

TEST(PartTest, WithoutAxesItIsTheWhole) {
  for (const char* family : {"llama", "gpt2"}) {
    Layout layout;
    layout.dp = 2;
    layout.shard = 3;
    EXPECT_EQ(*part_of(whole_of(family), layout, 4), whole_of(family));
  }
}

TEST(PartTest, PartsCoverEachElementAndCountItOnce) {
  for (const char* family : {"llama", "gpt2", "qwen2", "qwen3", "gemma2", "gemma3", "mistral"})
    for (const bool tied : {false, true})
      for (const int tp : {1, 2, 4})
        for (const int pp : {1, 2, 3}) expect_covered(whole_of(family, tied), layout_of(tp, pp));
}

TEST(PartTest, VirtualStagesOfAVAreCoveredToo) {
  const Architecture whole = whole_of("llama", true);
  const Layout layout = layout_of(2, 2, 2, "hanayo");
  expect_covered(whole, layout);
  // Of six layers 2, 2, 1, 1 in the order of the stages; the first rank has the first and the last
  // stage, and so needs no copy for its tied head.
  const Architecture first = *part_of(whole, layout, 0);
  EXPECT_TRUE(first.layers[0].held && first.layers[1].held && first.layers[5].held);
  EXPECT_FALSE(first.layers[2].held || first.layers[3].held || first.layers[4].held);
  EXPECT_TRUE(named(first, "model.embed_tokens.weight").counts);
}

// Every pipeline rank has rows of the head, the last stage what stands before it.
TEST(PartTest, ASpreadHeadIsCoveredToo) {
  for (const char* family : {"llama", "gpt2", "gemma2"})
    for (const int tp : {1, 2, 4})
      for (const int pp : {2, 3}) {
        Layout layout = layout_of(tp, pp);
        layout.spread_head = true;
        expect_covered(whole_of(family), layout);
      }
  Layout layout = layout_of(1, 3);
  layout.spread_head = true;
  for (int rank = 0; rank < 3; ++rank) {
    const Architecture part = *part_of(whole_of("llama"), layout, rank);
    EXPECT_EQ(part.num_head_rows(), rank == 2 ? 22 : 21);  // of 64
    EXPECT_EQ(named(part, "lm_head.weight").offsets, (std::vector<std::int64_t>{21 * rank, 0}));
    EXPECT_TRUE(part.layers.back().held);
    EXPECT_EQ(part.layers.back().parameters.size(), rank == 2 ? 2u : 1u);
    EXPECT_EQ(part.head.has_stream(), rank == 2);
  }
}

// Every pipeline rank has rows of the embedding, the first stage what is added to them.
TEST(PartTest, ASpreadEmbeddingIsCoveredToo) {
  for (const char* family : {"llama", "gpt2", "gemma2"})
    for (const int tp : {1, 2, 4})
      for (const int pp : {2, 3})
        for (const bool tied : {false, true}) {
          Layout layout = layout_of(tp, pp);
          layout.spread_embedding = true;
          layout.spread_head = tied;
          expect_covered(whole_of(family, tied), layout);
        }
  Layout layout = layout_of(1, 3);
  layout.spread_embedding = true;
  for (int rank = 0; rank < 3; ++rank) {
    const Architecture part = *part_of(whole_of("gpt2"), layout, rank);
    EXPECT_EQ(named(part, "transformer.wte.weight").offsets,
              (std::vector<std::int64_t>{21 * rank, 0}));
    EXPECT_TRUE(part.layers.front().held);
    EXPECT_EQ(part.layers.front().parameters.size(), rank == 0 ? 2u : 1u);  // of positions
    EXPECT_EQ(part.has_stream(part.layers.front()), rank == 0);
  }
}

// 64 rows over 3 stages of 2: neighbours have as many, so that their buffers are alike.
TEST(PartTest, TensorRanksHaveEquallyManyRowsOfWhatIsSpread) {
  Layout layout = layout_of(2, 3);
  layout.spread_embedding = layout.spread_head = true;
  std::vector<std::int64_t> rows;
  for (int rank = 0; rank < 6; ++rank)
    rows.push_back(part_of(whole_of("llama"), layout, rank)->num_head_rows());
  EXPECT_EQ(rows, (std::vector<std::int64_t>{10, 10, 11, 11, 11, 11}));
}

// The rows that a rank looks up are those that it makes logits of; the norm is the last stage's.
TEST(PartTest, ASpreadTiedMatrixIsOneOnEachRank) {
  Layout layout = layout_of(1, 3);
  layout.spread_embedding = layout.spread_head = true;
  for (int rank = 0; rank < 3; ++rank) {
    const Architecture part = *part_of(whole_of("llama", true), layout, rank);
    EXPECT_EQ(part.layers.front().parameters, (std::vector<int>{0}));
    EXPECT_EQ(part.layers.back().parameters.back(), 0);
    EXPECT_EQ(part.num_head_rows(), rank == 2 ? 22 : 21);  // of 64
    EXPECT_TRUE(part.parameters[0].counts);
    EXPECT_EQ(part.layers.back().groups,
              rank == 2 ? (std::vector<int>{0, part.layers.back().index}) : std::vector<int>{0});
  }
}

TEST(PartTest, WhatIsSpreadIsRefusedWithItsRemedy) {
  const auto refusal = [](const Architecture& whole, int pp, bool embedding, bool head) {
    Layout layout = layout_of(1, pp);
    layout.spread_embedding = embedding;
    layout.spread_head = head;
    const auto part = part_of(whole, layout, 0);
    return part ? "" : part.error().message + "; " + part.error().hint;
  };
  EXPECT_EQ(refusal(whole_of("llama", true), 2, false, true),
            "layout: the head cannot be spread over all stages: its matrix is the embedding's too, "
            "which the first stage holds whole; leave it on the last stage (parallel.head: "
            "last_stage), spread both (parallel.embedding: all_stages), or untie them "
            "(model.tie_word_embeddings: false)");
  EXPECT_EQ(refusal(whole_of("llama", true), 2, true, false),
            "layout: the embedding cannot be spread over all stages: its matrix is the head's too, "
            "which the last stage holds whole; leave it on the first stage (parallel.embedding: "
            "first_stage), spread both (parallel.head: all_stages), or untie them "
            "(model.tie_word_embeddings: false)");
  EXPECT_EQ(refusal(whole_of("llama"), 1, true, false),
            "layout: the embedding cannot be spread over all stages: pp is 1, so there is one rank "
            "of stages; leave it on the first stage (parallel.embedding: first_stage)");
}

// 16 columns, 4 heads of 4 on 2 heads of keys and values, by hand.
TEST(PartTest, HeadsOfTwoRanks) {
  const Architecture part = *part_of(whole_of("qwen3"), layout_of(2), 1);
  const std::string block = "model.layers.0.self_attn.";
  const ParameterSpec& query = named(part, block + "q_proj.weight");
  EXPECT_EQ(query.shape, (std::vector<std::int64_t>{8, 16}));
  EXPECT_EQ(query.whole_shape, (std::vector<std::int64_t>{16, 16}));
  EXPECT_EQ(query.offsets, (std::vector<std::int64_t>{8, 0}));
  EXPECT_EQ(query.sum_ranks, 1);
  const ParameterSpec& key = named(part, block + "k_proj.weight");
  EXPECT_EQ(key.shape, (std::vector<std::int64_t>{4, 16}));
  EXPECT_EQ(key.offsets, (std::vector<std::int64_t>{4, 0}));
  EXPECT_EQ(key.sum_ranks, 1);
  const ParameterSpec& output = named(part, block + "o_proj.weight");
  EXPECT_EQ(output.shape, (std::vector<std::int64_t>{16, 8}));
  EXPECT_EQ(output.offsets, (std::vector<std::int64_t>{0, 8}));
  const ParameterSpec& norm = named(part, block + "q_norm.weight");
  EXPECT_TRUE(norm.whole_shape.empty());
  EXPECT_EQ(norm.sum_ranks, 2);
  EXPECT_FALSE(norm.counts);
  EXPECT_EQ(named(part, "lm_head.weight").offsets, (std::vector<std::int64_t>{32, 0}));
  EXPECT_EQ(part.config.num_attention_heads, 2);
  EXPECT_EQ(part.config.num_key_value_heads, 1);
  EXPECT_EQ(part.config.vocab_size, 32);
}

TEST(PartTest, FewerHeadsOfKeysThanRanksAreHeldByNeighbours) {
  for (int rank = 0; rank < 4; ++rank) {
    const Architecture part = *part_of(whole_of("qwen2"), layout_of(4), rank);
    for (const char* name : {"k_proj.weight", "v_proj.weight", "k_proj.bias"}) {
      const ParameterSpec& key = named(part, std::string("model.layers.0.self_attn.") + name);
      EXPECT_EQ(key.offsets.front(), rank / 2 * 4);
      EXPECT_EQ(key.sum_ranks, 2);
      EXPECT_EQ(key.counts, rank % 2 == 0);
    }
    EXPECT_EQ(part.config.num_key_value_heads, 1);
  }
}

// Columns 0-15 make queries, 16-31 keys, 32-47 values of four heads each.
TEST(PartTest, AFusedMatrixBecomesThree) {
  const Architecture part = *part_of(whole_of("gpt2"), layout_of(2), 1);
  for (std::size_t i = 0; i < 3; ++i) {
    const ParameterSpec& weight = named(part, "transformer.h.0.attn.c_attn.weight", i);
    EXPECT_EQ(weight.shape, (std::vector<std::int64_t>{16, 8}));
    EXPECT_EQ(weight.offsets, (std::vector<std::int64_t>{0, static_cast<int>(i) * 16 + 8}));
    const ParameterSpec& bias = named(part, "transformer.h.0.attn.c_attn.bias", i);
    EXPECT_EQ(bias.shape, (std::vector<std::int64_t>{8}));
    EXPECT_EQ(bias.offsets, (std::vector<std::int64_t>{static_cast<int>(i) * 16 + 8}));
    EXPECT_EQ(weight.role, i == 0 ? Role::kQuery : Role::kKeyValue);
    EXPECT_EQ(bias.role, i == 0 ? Role::kQueryBias : Role::kKeyValue);
  }
  const ParameterSpec& output = named(part, "transformer.h.0.attn.c_proj.weight");
  EXPECT_EQ(output.offsets, (std::vector<std::int64_t>{8, 0}));  // stored [in, out]
  EXPECT_EQ(named(part, "transformer.wpe.weight").sum_ranks, 2);
  EXPECT_EQ(named(part, "transformer.h.0.mlp.c_proj.bias").sum_ranks, 2);
  EXPECT_EQ(named(part, "transformer.h.0.mlp.c_fc.bias").sum_ranks, 1);
}

TEST(PartTest, ALastStageWithATiedHeadHoldsGroupZero) {
  const Architecture whole = whole_of("gpt2", true);
  const Architecture first = *part_of(whole, layout_of(1, 2), 0);
  const Architecture last = *part_of(whole, layout_of(1, 2), 1);
  EXPECT_FALSE(last.layers[0].held);
  EXPECT_TRUE(last.layers[0].parameters.empty());
  EXPECT_FALSE(named(last, "transformer.wte.weight").counts);
  EXPECT_EQ(last.layers[5].groups, (std::vector<int>{0, 5}));
  EXPECT_EQ(last.layers[5].parameters.back(), 0);
  // Runs are summed in place: both buffers must be alike, and both shards.
  for (const int num_shards : {1, 3}) {
    const auto ours = plan_buffers(last, num_shards)[0];
    EXPECT_EQ(ours, plan_buffers(first, num_shards)[0]);
    EXPECT_FALSE(ours.placements.empty());
  }
}

TEST(PartTest, GroupsOfOtherStagesAreEmpty) {
  const Architecture part = *part_of(whole_of("llama"), layout_of(1, 3), 1);
  EXPECT_EQ(part.num_groups(), 6);
  const auto plans = plan_buffers(part, 2);
  for (const int group : {0, 1, 4, 5}) EXPECT_EQ(plans[static_cast<std::size_t>(group)].total(), 0);
  EXPECT_GT(plans[2].total(), 0);
  EXPECT_FALSE(part.layers[2].stash.empty());
  EXPECT_TRUE(part.layers[1].stash.empty());
}

TEST(PartTest, StashAndFlopsAreThoseOfThePart) {
  const Architecture whole = whole_of("llama");
  const Architecture part = *part_of(whole, layout_of(2), 0);
  const auto elements = [](const Architecture& architecture, const char* name) {
    for (const auto& tensor : architecture.layers[1].stash)
      if (tensor.name == name) return tensor.elements_per_token;
    return std::int64_t{-1};
  };
  EXPECT_EQ(elements(part, "qkv") * 2, elements(whole, "qkv"));
  EXPECT_EQ(elements(part, "gate_up") * 2, elements(whole, "gate_up"));
  EXPECT_EQ(part.layers[1].segments[0].flops_per_token * 2,
            whole.layers[1].segments[0].flops_per_token);
}

Architecture experts_of(const std::string& family) {
  recipe::Model model = support::small_model(family);
  model.vocab_size = 64;
  model.num_experts = 6;
  return *model::make_architecture(model, DType::kFloat64);
}

TEST(PartTest, ExpertsAreCoveredOverTheirOwnAxes) {
  for (const char* family : {"mixtral", "qwen3_moe", "deepseek_v2", "deepseek_v3"})
    for (const int ep : {1, 2, 3})
      for (const int etp : {1, 2})
        for (const int pp : {1, 2}) {
          Layout layout = layout_of(1, pp);
          layout.dp = 12;
          layout.ep = ep;
          layout.etp = etp;
          expect_covered(experts_of(family), layout);
        }
}

// Ranks 0 and 1 share experts 0 to 2, ranks 2 and 3 experts 3 to 5, each with half of the width.
TEST(PartTest, ExpertsKeepTheirNumbers) {
  Layout layout;
  layout.dp = 4;
  layout.ep = layout.etp = 2;
  const Architecture part = *part_of(experts_of("mixtral"), layout, 3);
  std::vector<std::string> names;
  int first_ups = 0, first_downs = 0;
  for (const int index : part.layers[1].parameters) {
    const ParameterSpec& parameter = part.parameters[static_cast<std::size_t>(index)];
    if (!part.groups[static_cast<std::size_t>(parameter.group)].experts) continue;
    names.push_back(parameter.name);
    first_ups += parameter.role == Role::kExpertUp;
    first_downs += parameter.role == Role::kExpertDown;
    const bool down = parameter.name.ends_with("w2.weight");
    EXPECT_EQ(parameter.offsets[down ? 1 : 0] * 2, parameter.whole_shape[down ? 1 : 0]);
  }
  ASSERT_EQ(names.size(), 9U);
  EXPECT_EQ(names.front(), "model.layers.0.block_sparse_moe.experts.3.w1.weight");
  EXPECT_EQ(names.back(), "model.layers.0.block_sparse_moe.experts.5.w2.weight");
  EXPECT_EQ(first_ups, 1);
  EXPECT_EQ(first_downs, 1);
}

TEST(PartTest, RefusesDegreesThatDoNotDivide) {
  const auto heads = part_of(whole_of("llama"), layout_of(3), 0);
  ASSERT_FALSE(heads);
  EXPECT_EQ(heads.error().message, "layout: tp is 3, which does not divide 4 attention heads");
  EXPECT_EQ(heads.error().hint, "the nearest that does is tp 2");
  Architecture odd = whole_of("llama");
  odd.config.vocab_size = 61;
  const auto vocabulary = part_of(odd, layout_of(2), 0);
  ASSERT_FALSE(vocabulary);
  EXPECT_EQ(vocabulary.error().message,
            "layout: tp is 2, which does not divide 61 rows of the vocabulary");
  EXPECT_EQ(vocabulary.error().hint, "the nearest that does is tp 1");
  EXPECT_FALSE(part_of(whole_of("llama"), layout_of(8), 0));
  Layout experts;
  experts.dp = experts.ep = 2;
  EXPECT_FALSE(part_of(whole_of("llama"), experts, 0));
}

TEST(PartTest, RefusesOptimizersThatMustSeeWhatIsSplit) {
  Architecture whole = whole_of("llama");
  recipe::Optimizer optimizer;
  optimizer.kind = recipe::OptimizerKind::kMuon;
  model::use_optimizer(whole, optimizer);
  const auto split = part_of(whole, layout_of(2), 0);
  ASSERT_FALSE(split);
  EXPECT_NE(split.error().message.find("must see the matrix whole"), std::string::npos);
  EXPECT_TRUE(part_of(whole, layout_of(1, 2), 0));
}

}  // namespace
}  // namespace ptrain::mesh
