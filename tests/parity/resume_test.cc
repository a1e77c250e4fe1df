// Whole runs, with ranks as threads: what is stopped and resumed goes on as if it had not been.

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "tests/parity/run_folder.h"

namespace ptrain::parity {
namespace {

mesh::Layout layout(int dp, int shard, int zero) {
  mesh::Layout value;
  value.dp = dp;
  value.shard = shard;
  value.zero = zero;
  value.micro_batch = 1;
  value.num_micro_batches = 4 / (dp * shard);
  return value;
}

// `from`: steps that `run` did not do itself.
void expect_same_losses(const RunRecord& run, const RunRecord& truth, std::size_t from,
                        double tolerance) {
  ASSERT_EQ(run.losses.size() + from, truth.losses.size());
  for (std::size_t i = 0; i < run.losses.size(); ++i) {
    EXPECT_EQ(run.steps[i], truth.steps[i + from]);
    EXPECT_EQ(run.tokens_total[i], truth.tokens_total[i + from]) << "after step " << run.steps[i];
    EXPECT_NEAR(run.losses[i], truth.losses[i + from], tolerance * truth.losses[i + from])
        << "step " << run.steps[i];
  }
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Of two checkpoints.
void expect_same_files(const std::string& folder, const std::string& truth) {
  for (const char* file : {"/__0_0.distcp", "/.metadata"})
    EXPECT_TRUE(bytes_of(folder + file) == bytes_of(truth + file)) << folder << file;
}

TEST(Run, TwoShapesFollowEachOther) {
  const RunFolders folders;
  const auto run = folders.train("run", folders.plan(layout(1, 2, 3), layout(2, 1, 1)), "");
  EXPECT_EQ(run.steps, (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(run.next_shapes, (std::vector<std::string>{"long", ""}));
}

// Every number of ranks trains on the same rows from the same initial values.
TEST(Run, EveryLayoutTrainsTheSame) {
  const RunFolders folders;
  const auto one = folders.train("one", folders.plan(layout(1, 1, 1), layout(1, 1, 1)), "");
  const mesh::Layout layouts[] = {layout(2, 1, 1), layout(1, 2, 3), layout(2, 2, 2)};
  for (const auto& each : layouts) {
    const std::string name = "ranks" + mesh::to_string(each);
    const auto run = folders.train(name, folders.plan(each, each), "");
    expect_same_losses(run, one, 0, 1e-5);
  }
}

// The bits of all later losses, and of what is saved at the end.
TEST(Resume, OnTheSameLayoutIsBitExact) {
  const RunFolders folders;
  const mesh::Layout layouts[] = {layout(1, 1, 1), layout(2, 1, 1), layout(1, 2, 3)};
  for (const auto& each : layouts) {
    const std::string name = "run" + mesh::to_string(each);
    const auto plan = folders.plan(each, each);
    const auto whole = folders.train(name, plan, "");
    for (const std::int64_t step : {2, 4, 6}) {
      const std::string resumed = name + "-from-" + std::to_string(step);
      const auto rest = folders.train(resumed, plan, folders.checkpoint(name, step));
      expect_same_losses(rest, whole, static_cast<std::size_t>(step), 0);
      expect_same_files(folders.checkpoint(resumed, 8), folders.checkpoint(name, 8));
    }
  }
}

// The same for kinds of optimizers whose state has other tensors, and for what is sharded by
// owners.
TEST(Resume, OfOtherOptimizersIsBitExact) {
  const RunFolders folders;
  using enum recipe::OptimizerKind;
  for (const auto kind : {kMuon, kAdam8bit, kLion, kSgd}) {
    const std::string name = "kind" + std::to_string(static_cast<int>(kind));
    auto plan = folders.plan(layout(1, 2, 3), layout(2, 1, 1));
    plan.recipe.optimizer.kind = kind;
    const auto whole = folders.train(name, plan, "");
    const auto rest = folders.train(name + "-rest", plan, folders.checkpoint(name, 2));
    expect_same_losses(rest, whole, 2, 0);
    expect_same_files(folders.checkpoint(name + "-rest", 8), folders.checkpoint(name, 8));
  }
}

// Masters are saved in fp32, and what layers read is made of them again.
TEST(Resume, InBFloat16IsBitExact) {
  const RunFolders folders;
  for (const auto& each : {layout(1, 1, 1), layout(1, 2, 3)}) {
    const std::string name = "rounded" + mesh::to_string(each);
    auto plan = folders.plan(each, layout(each.num_ranks(), 1, 1));
    plan.recipe.precision = recipe::Precision::kBFloat16;
    const auto whole = folders.train(name, plan, "");
    for (const std::int64_t step : {2, 6}) {
      const std::string resumed = name + "-from-" + std::to_string(step);
      const auto rest = folders.train(resumed, plan, folders.checkpoint(name, step));
      expect_same_losses(rest, whole, static_cast<std::size_t>(step), 0);
      expect_same_files(folders.checkpoint(resumed, 8), folders.checkpoint(name, 8));
    }
  }
}

// A checkpoint is the same whichever of the two wrote it.
TEST(Resume, MayGoOnInBFloat16AndBack) {
  const RunFolders folders;
  auto exact = folders.plan(layout(1, 2, 3), layout(2, 1, 1)), rounded = exact;
  rounded.recipe.precision = recipe::Precision::kBFloat16;
  const auto one = folders.train("exact", exact, "");
  const auto other = folders.train("rounded", rounded, "");
  EXPECT_NE(one.losses, other.losses);
  constexpr double kRounding = 3e-3;
  expect_same_losses(other, one, 0, kRounding);
  expect_same_losses(folders.train("narrowed", rounded, folders.checkpoint("exact", 4)), one, 4,
                     kRounding);
  expect_same_losses(folders.train("widened", exact, folders.checkpoint("rounded", 4)), one, 4,
                     kRounding);
}

mesh::Layout offloaded(mesh::Layout value) {
  value.offload = recipe::Offload::kOptimizer;
  return value;
}

// State in memory and state on the disk are one: in all bits, in checkpoints, and from the one to
// the other.
TEST(Resume, WithOffloadedStateIsBitExact) {
  const RunFolders folders;
  using enum recipe::OptimizerKind;
  for (const auto kind : {kAdamW, kMuon, kAdam8bit}) {
    const std::string name = "kind" + std::to_string(static_cast<int>(kind));
    const mesh::Layout first = layout(1, 2, 3), second = layout(2, 1, 1);
    auto resident = folders.plan(first, second);
    auto away = folders.plan(offloaded(first), offloaded(second));
    resident.recipe.optimizer.kind = away.recipe.optimizer.kind = kind;
    const auto whole = folders.train(name, resident, "");
    expect_same_losses(folders.train(name + "-away", away, ""), whole, 0, 0);
    for (const std::int64_t step : {2, 4, 8})
      expect_same_files(folders.checkpoint(name + "-away", step), folders.checkpoint(name, step));
    const auto left = folders.train(name + "-left", away, folders.checkpoint(name, 2));
    expect_same_losses(left, whole, 2, 0);
    const auto back =
        folders.train(name + "-back", resident, folders.checkpoint(name + "-away", 6));
    expect_same_losses(back, whole, 6, 0);
    expect_same_files(folders.checkpoint(name + "-left", 8), folders.checkpoint(name, 8));
    expect_same_files(folders.checkpoint(name + "-back", 8), folders.checkpoint(name, 8));
  }
}

// Runs of one rank come to lie in the shards of others, moments and all.
TEST(Resume, WithOffloadedStateOnOtherLayouts) {
  const RunFolders folders;
  const mesh::Layout one = layout(1, 1, 1), four = offloaded(layout(2, 2, 3));
  const auto whole = folders.train("one", folders.plan(one, one), "");
  const auto rest = folders.train("four", folders.plan(four, four), folders.checkpoint("one", 2));
  expect_same_losses(rest, whole, 2, 1e-5);
  const auto again =
      folders.train("again", folders.plan(one, offloaded(one)), folders.checkpoint("four", 4));
  expect_same_losses(again, whole, 4, 1e-5);
}

TEST(Resume, OnOtherLayoutsIsTheSameWithinRounding) {
  const RunFolders folders;
  const mesh::Layout from[] = {layout(1, 1, 1), layout(2, 1, 1), layout(1, 2, 3)};
  const mesh::Layout to[] = {layout(1, 4, 2), layout(2, 2, 3), layout(1, 1, 1)};
  for (int i = 0; i < 3; ++i) {
    const std::string name = "run" + std::to_string(i);
    const auto whole = folders.train(name, folders.plan(from[i], from[i]), "");
    const auto rest =
        folders.train(name + "-other", folders.plan(to[i], to[i]), folders.checkpoint(name, 2));
    expect_same_losses(rest, whole, 2, 1e-5);
  }
}

mesh::Layout with_spread_head(mesh::Layout value, int pp, const char* schedule) {
  value.pp = pp;
  value.schedule = schedule;
  value.spread_head = true;
  return value;
}

mesh::Layout with_spread_ends(mesh::Layout value, int pp, const char* schedule) {
  value = with_spread_head(std::move(value), pp, schedule);
  value.spread_embedding = true;
  return value;
}

// Parts of the vocabulary are saved and read as any other parts, from one rank and back.
TEST(Resume, WithASpreadHeadOnOtherLayouts) {
  const RunFolders folders;
  const mesh::Layout one = layout(1, 1, 1);
  const mesh::Layout two = with_spread_head(layout(1, 1, 1), 2, "1f1b");
  const mesh::Layout six = with_spread_head(layout(1, 2, 3), 3, "zb_h1");
  const auto whole = folders.train("one", folders.plan(one, one), "");
  const auto rest = folders.train("two", folders.plan(two, two), folders.checkpoint("one", 2));
  expect_same_losses(rest, whole, 2, 1e-5);
  const auto more = folders.train("six", folders.plan(six, six), folders.checkpoint("two", 4));
  expect_same_losses(more, whole, 4, 1e-5);
  const auto last = folders.train("last", folders.plan(one, one), folders.checkpoint("six", 6));
  expect_same_losses(last, whole, 6, 1e-5);
}

// A tied matrix is saved once, by parts.
TEST(Resume, WithASpreadTiedMatrixOnOtherLayouts) {
  const RunFolders folders;
  const auto plan = [&](const mesh::Layout& layout) {
    run::Plan tied = folders.plan(layout, layout);
    tied.recipe.model.tie_word_embeddings = true;
    return tied;
  };
  const mesh::Layout one = layout(1, 1, 1);
  const mesh::Layout two = with_spread_ends(layout(1, 1, 1), 2, "1f1b");
  const mesh::Layout six = with_spread_ends(layout(1, 2, 3), 3, "zb_h1");
  const auto whole = folders.train("one", plan(one), "");
  const auto rest = folders.train("two", plan(two), folders.checkpoint("one", 2));
  expect_same_losses(rest, whole, 2, 1e-5);
  const auto more = folders.train("six", plan(six), folders.checkpoint("two", 4));
  expect_same_losses(more, whole, 4, 1e-5);
  const auto last = folders.train("last", plan(one), folders.checkpoint("six", 6));
  expect_same_losses(last, whole, 6, 1e-5);
}

}  // namespace
}  // namespace ptrain::parity
