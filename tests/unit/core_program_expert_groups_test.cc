// Programs of layouts in which experts lie over other ranks than dense parameters.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/mesh/part.h"
#include "core/program/compile.h"
#include "core/program/memory.h"
#include "core/program/validate.h"
#include "tests/support/small_model.h"

namespace ptrain::program {
namespace {

struct World {
  explicit World(const mesh::Layout& of_layout, const char* family = "qwen3_moe")
      : layout(of_layout) {
    recipe::Model model = support::small_model(family);
    model.num_experts = 12;
    model.vocab_size = 64;
    whole = *model::make_architecture(model, DType::kFloat32);
    for (int rank = 0; rank < layout.num_ranks(); ++rank) {
      parts.push_back(*mesh::part_of(whole, layout, rank));
      programs.push_back(*compile({parts.back(), layout, "test"}, rank));
    }
  }
  Status validated(Queues queues) const {
    std::vector<const Program*> world;
    std::vector<const model::Architecture*> of_ranks;
    for (std::size_t rank = 0; rank < programs.size(); ++rank) {
      world.push_back(&programs[rank]);
      of_ranks.push_back(&parts[rank]);
    }
    return validate(world, of_ranks, layout, queues);
  }
  int count(Kind kind, bool experts) const {
    const auto is_counted = [&](const Action& action) {
      return action.kind == kind &&
             whole.groups[static_cast<std::size_t>(action.group)].experts == experts;
    };
    return static_cast<int>(std::ranges::count_if(programs[0].actions, is_counted));
  }

  mesh::Layout layout;
  model::Architecture whole;
  std::vector<model::Architecture> parts;
  std::vector<Program> programs;
};

TEST(ExpertGroups, EveryLayoutMeetsWhereItMust) {
  using mesh::Layout;
  for (const Layout& layout :
       {Layout{.dp = 4, .ep = 2, .num_micro_batches = 2},
        Layout{.shard = 4, .ep = 2, .zero = 3, .num_micro_batches = 2},
        Layout{.dp = 2, .shard = 2, .ep = 2, .etp = 2, .zero = 2, .num_micro_batches = 3},
        Layout{.dp = 2, .shard = 2, .ep = 2, .zero = 2, .num_micro_batches = 3},
        Layout{.dp = 2, .shard = 3, .ep = 3, .zero = 3, .num_micro_batches = 2},
        Layout{.dp = 2, .tp = 2, .num_micro_batches = 2},
        Layout{.dp = 2, .cp = 2, .tp = 2, .ep = 4, .zero = 2},
        Layout{.shard = 2,
        .pp = 2,
        .num_virtual = 2,
        .schedule = "dualpipe_v",
        .ep = 2,
        .zero = 2,
        .num_micro_batches = 4}}) {
    const World world(layout);
    for (const Queues queues : {Queues::kByLane, Queues::kOne}) {
      const Status status = world.validated(queues);
      EXPECT_TRUE(status) << to_string(layout) << ": " << status.error().message;
    }
  }
}

// Experts that are on one rank each are never gathered nor reduced, whatever dense parameters need.
TEST(ExpertGroups, WhatOneRankHoldsIsItsOwn) {
  const World alone({.shard = 4, .ep = 4, .zero = 3, .num_micro_batches = 2});
  EXPECT_EQ(alone.count(Kind::kUnshard, true), 0);
  EXPECT_EQ(alone.count(Kind::kReduceGrad, true), 0);
  EXPECT_GT(alone.count(Kind::kUnshard, false), 0);
  const World replicas({.dp = 2, .shard = 3, .ep = 3, .zero = 3, .num_micro_batches = 2});
  EXPECT_EQ(replicas.count(Kind::kUnshard, true), 0);
  EXPECT_EQ(replicas.count(Kind::kReduceGrad, true), 1) << "once a step, over replicas";
  EXPECT_EQ(replicas.count(Kind::kReduceGrad, false), 2 * 4);
}

// Over two ranks the second holds experts 6 to 11: half the bytes of a model whose experts are on
// each, and shards of these.
TEST(ExpertGroups, TakeTheBytesOfTheirShards) {
  const auto parameters_of = [](const World& world) {
    const auto buffers = mesh::plan_buffers(world.parts[1], world.layout);
    std::int64_t bytes = 0;
    for (const auto& buffer : buffers) {
      if (!world.whole.groups[static_cast<std::size_t>(buffer.group)].experts) continue;
      const MemoryContext context{
          world.parts[1], world.layout, {&buffer, 1}, 8, mesh::shard_ranks_of(world.layout, 1)};
      bytes += persistent_bytes(context)[static_cast<std::size_t>(MemoryClass::kParameters)].value;
    }
    return bytes;
  };
  const std::int64_t all = parameters_of(World({.dp = 4}));
  EXPECT_EQ(all, 12 * 3 * 16 * 12 * 4) << "one layer of twelve experts of 16 x 12, in fp32";
  EXPECT_EQ(parameters_of(World({.dp = 4, .ep = 2})), all / 2);
  EXPECT_EQ(parameters_of(World({.shard = 4, .ep = 2})), all / 4);
  EXPECT_EQ(parameters_of(World({.shard = 4, .ep = 4})), all / 4);
}

}  // namespace
}  // namespace ptrain::program
