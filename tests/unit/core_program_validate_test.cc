#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>

#include "core/program/compile.h"
#include "core/program/validate.h"
#include "tests/support/compile_world.h"
#include "tests/support/small_llama.h"

namespace ptrain::program {
namespace {

using mesh::Layout;
using support::small_llama;
using World = std::vector<Program>;

const Layout kZero3{.shard = 2, .zero = 3, .num_micro_batches = 2};
const Layout kReplicas{.dp = 2, .num_micro_batches = 2, .recompute = recipe::Recompute::kFull};

World world_of(const model::Architecture& architecture, const Layout& layout,
               Purpose purpose = Purpose::kTrain) {
  return support::compile_world({architecture, layout, "short", purpose});
}

// Puts actions in the order of `ids` (old ids; one may be missing or twice) and renames them.
void rearrange(Program& program, const std::vector<int>& ids) {
  std::vector<int> position(program.actions.size(), -1);
  std::vector<Action> actions;
  for (int id : ids) {
    int& first = position[static_cast<std::size_t>(id)];
    if (first < 0) first = static_cast<int>(actions.size());
    actions.push_back(program.actions[static_cast<std::size_t>(id)]);
  }
  for (std::size_t i = 0; i < actions.size(); ++i) {
    actions[i].id = static_cast<int>(i);
    std::vector<int> after;
    for (int id : actions[i].after) {
      if (position[static_cast<std::size_t>(id)] >= 0) {
        after.push_back(position[static_cast<std::size_t>(id)]);
      }
    }
    actions[i].after = after;
  }
  program.actions = actions;
}

std::vector<int> ids_of(const Program& program) {
  std::vector<int> ids;
  for (const Action& action : program.actions) ids.push_back(action.id);
  return ids;
}

void drop(Program& program, int id) {
  std::vector<int> ids = ids_of(program);
  ids.erase(ids.begin() + id);
  rearrange(program, ids);
}

void duplicate(Program& program, int id) {
  std::vector<int> ids = ids_of(program);
  ids.insert(ids.begin() + id, id);
  rearrange(program, ids);
}

void swap_with_next(Program& program, int id) {
  std::vector<int> ids = ids_of(program);
  std::swap(ids[static_cast<std::size_t>(id)], ids[static_cast<std::size_t>(id) + 1]);
  rearrange(program, ids);
}

Action& at(Program& program, int id) { return program.actions[static_cast<std::size_t>(id)]; }

void set_attribute(Program& program, int id, std::string value) {
  at(program, id).attributes[0].second = std::move(value);
}

std::string message(const Status& status) { return status ? "" : status.error().message; }

// What is said after all ranks' programs were changed alike.
std::string broken(const Layout& layout, const std::function<void(Program&)>& change) {
  const auto architecture = small_llama(1);
  World world = world_of(architecture, layout);
  for (Program& program : world) change(program);
  return message(validate(world, architecture, layout));
}

TEST(Validate, CompiledWorldsAreLegal) {
  for (bool tied : {false, true}) {
    const auto architecture = small_llama(3, tied);
    for (int zero : {1, 2, 3}) {
      for (int prefetch : {0, 1, 5}) {
        const Layout layout{.dp = 2,
                            .shard = 3,
                            .zero = zero,
                            .num_micro_batches = 3,
                            .recompute = recipe::Recompute::kFull,
                            .prefetch = prefetch};
        for (Queues queues : {Queues::kByLane, Queues::kOne}) {
          const World world = world_of(architecture, layout);
          EXPECT_EQ(message(validate(world, architecture, layout, queues)), "");
          const World evaluation = world_of(architecture, layout, Purpose::kEvaluate);
          EXPECT_EQ(message(validate(evaluation, architecture, layout, queues)), "");
        }
      }
    }
  }
}

// Ids are those of tests/golden/program/zero3_shard2.txt.
TEST(Validate, GatherViolations) {
  EXPECT_EQ(broken(kZero3, [](Program& p) { drop(p, 4); }),
            "rank 0, 5 compute FORWARD s0 l2 m0 keep=all: g2 is not gathered");
  EXPECT_EQ(broken(kZero3, [](Program& p) { at(p, 6).after.clear(); }),
            "rank 0, 6 compute FORWARD s0 l2 m0 keep=all: does not wait for g2");
  EXPECT_EQ(broken(kZero3, [](Program& p) { duplicate(p, 1); }),
            "rank 0, 2 gather UNSHARD g1: g1 is whole already");
  EXPECT_EQ(broken(kZero3, [](Program& p) { duplicate(p, 3); }),
            "rank 0, 4 gather RESHARD g0 < 2: g0 is not gathered");
  EXPECT_EQ(broken(kZero3, [](Program& p) { at(p, 3).after.clear(); }),
            "rank 0, 3 gather RESHARD g0: does not wait for the last use of g0");
  EXPECT_EQ(broken(kZero3, [](Program& p) { drop(p, 25); }), "rank 0, end: g1 is never given back");
}

// Ids are those of tests/golden/program/dp2_recompute.txt.
TEST(Validate, StashViolations) {
  EXPECT_EQ(broken(kReplicas, [](Program& p) { drop(p, 4); }),
            "rank 0, 4 compute BACKWARD s0 l1 m0: of the stash only input is kept "
            "and nothing recomputed the rest");
  EXPECT_EQ(broken(kReplicas, [](Program& p) { duplicate(p, 4); }),
            "rank 0, 5 compute RECOMPUTE s0 l1 m0 from=input: the stash is whole already");
  EXPECT_EQ(broken(kReplicas, [](Program& p) { swap_with_next(p, 4); }),
            "rank 0, 4 compute BACKWARD s0 l1 m0: of the stash only input is kept "
            "and nothing recomputed the rest");
  EXPECT_EQ(broken(kReplicas, [](Program& p) { duplicate(p, 3); }),
            "rank 0, 4 compute BACKWARD s0 l2 m0: m0 is 3 layers forward and 1 back");
  EXPECT_EQ(broken(kReplicas, [](Program& p) { drop(p, 1); }),
            "rank 0, 1 compute FORWARD s0 l2 m0 keep=all: m0 is at layer 1");
  EXPECT_EQ(broken(kReplicas, [](Program& p) { set_attribute(p, 0, "none"); }),
            "rank 0, 0 compute FORWARD s0 l0 m0 keep=none: keeps a stash that no backward frees, "
            "or none for one");
  EXPECT_EQ(broken(kReplicas, [](Program& p) { set_attribute(p, 4, "selected"); }),
            "rank 0, 4 compute RECOMPUTE s0 l1 m0 from=selected: begins with another part of the "
            "stash than is kept: input");
  EXPECT_EQ(broken(kReplicas, [](Program& p) { set_attribute(p, 1, "some"); }),
            "rank 0, 1 compute FORWARD s0 l1 m0 keep=some: keep is not all, selected, input or "
            "none");
  EXPECT_EQ(broken(kReplicas, [](Program& p) { drop(p, 15); }),
            "rank 0, 15 reduce REDUCE_GRAD g0: g0 has 1 of 2 gradients");
}

TEST(Validate, GradientViolations) {
  EXPECT_EQ(broken(kReplicas, [](Program& p) { at(p, 11).after.clear(); }),
            "rank 0, 11 reduce REDUCE_GRAD g2: does not wait for the last gradient of g2");
  EXPECT_EQ(broken(kReplicas, [](Program& p) { duplicate(p, 11); }),
            "rank 0, 12 reduce REDUCE_GRAD g2 < 10: g2 is reduced already");
  EXPECT_EQ(broken(kReplicas, [](Program& p) { drop(p, 11); }),
            "rank 0, 16 reduce GRAD_NORM < 13 14 15: g2 is reduced 0 of 1 times");
  EXPECT_EQ(broken(kReplicas,
                   [](Program& p) {
                     at(p, 17).after = {11, 14, 15};
                   }),
            "rank 0, 17 reduce GRAD_NORM < 11 14 15: nobody waited for 16");
  EXPECT_EQ(broken(kZero3, [](Program& p) { drop(p, 8); }),
            "rank 0, 27 reduce GRAD_NORM < 23 25 26: g2 is reduced 1 of 2 times");
  EXPECT_EQ(broken(kZero3, [](Program& p) { at(p, 13).after = {10}; }),
            "rank 0, 20 compute BACKWARD s0 l2 m1 < 12: writes g2 while 8 reduces it");
}

// Sums over the replicas: each group once, with its last micro-batch.
TEST(Validate, ReplicaViolations) {
  const Layout hybrid{.dp = 2, .shard = 2, .zero = 3, .num_micro_batches = 2};
  EXPECT_EQ(broken(hybrid, [](Program& p) { at(p, 8).attributes.clear(); }),
            "rank 0, 8 reduce REDUCE_GRAD g2 m0 < 7: replicas add up before the last micro-batch");
  EXPECT_EQ(broken(hybrid,
                   [](Program& p) {
                     at(p, 21).attributes = {{"axis", "shard"}};
                   }),
            "rank 0, 21 reduce REDUCE_GRAD g2 m1 axis=shard < 20: sums over part of the data "
            "ranks, and no sum follows");
  EXPECT_EQ(broken(kZero3,
                   [](Program& p) {
                     at(p, 21).attributes = {{"axis", "shard"}};
                   }),
            "rank 0, 21 reduce REDUCE_GRAD g2 m1 axis=shard < 20: sums over part of the data "
            "ranks, and no sum follows");
}

TEST(Validate, UpdateViolations) {
  EXPECT_EQ(broken(kReplicas, [](Program& p) { at(p, 18).after.clear(); }),
            "rank 0, 18 compute OPTIMIZER g0: does not wait for GRAD_NORM");
  EXPECT_EQ(broken(kReplicas, [](Program& p) { drop(p, 20); }), "rank 0, end: g2 is never updated");
  EXPECT_EQ(broken(kReplicas, [](Program& p) { duplicate(p, 18); }),
            "rank 0, 19 compute OPTIMIZER g0 < 17: g0 is updated already");
  EXPECT_EQ(broken(kReplicas, [](Program& p) { duplicate(p, 17); }),
            "rank 0, 18 reduce GRAD_NORM < 11 14 15 16: a second norm");
}

TEST(Validate, FormViolations) {
  EXPECT_EQ(broken(kReplicas, [](Program& p) { at(p, 3).after = {5}; }),
            "rank 0, 3 compute BACKWARD s0 l2 m0 < 5: waits for 5, which is not "
            "before it");
  EXPECT_EQ(broken(kReplicas, [](Program& p) { at(p, 3).lane = Lane::kReduce; }),
            "rank 0, 3 reduce BACKWARD s0 l2 m0: belongs on lane compute");
  EXPECT_EQ(broken(kReplicas, [](Program& p) { at(p, 3).kind = Kind::kSendForward; }),
            "rank 0, 3 compute SEND_F s0 l2 m0: belongs on lane transfer");
  EXPECT_EQ(broken(kReplicas, [](Program& p) { at(p, 3).micro_batch = 2; }),
            "rank 0, 3 compute BACKWARD s0 l2 m2: no such layer or micro-batch");
  EXPECT_EQ(broken(kReplicas, [](Program& p) { at(p, 18).group = 3; }),
            "rank 0, 18 compute OPTIMIZER g3 < 17: no such group");
  EXPECT_EQ(broken(kReplicas, [](Program& p) { p.rank = 1; }),
            "rank 0, header: holds another rank's program");
  const auto architecture = small_llama(1);
  const World one{world_of(architecture, kReplicas).front()};
  EXPECT_EQ(message(validate(one, architecture, kReplicas)), "1 programs for 2 ranks");
}

// Each rank alone is legal; together they never meet.
TEST(Validate, RanksThatDoNotMeet) {
  const auto architecture = small_llama(1);
  World world = world_of(architecture, kZero3);
  swap_with_next(world[1], 0);
  EXPECT_EQ(message(validate(world, architecture, kZero3)),
            "rank 0, 0 gather UNSHARD g0: never runs: its group does not meet here");
}

TEST(Validate, UnequalMicroBatchCounts) {
  const auto architecture = small_llama(1);
  Layout more = kZero3;
  more.num_micro_batches = 3;
  World world = world_of(architecture, kZero3);
  world[1] = world_of(architecture, more)[1];
  const std::string why = message(validate(world, architecture, kZero3));
  EXPECT_TRUE(why.starts_with("rank 1, ") && why.ends_with(": no such layer or micro-batch"))
      << why;
}

// One program stands for all ranks of its class: the same verdict as with a copy for each.
TEST(Validate, RanksOfAClassShareAProgram) {
  const auto architecture = small_llama(1);
  World world = world_of(architecture, kZero3);
  const std::vector<const Program*> shared(2, &world[0]);
  EXPECT_EQ(message(validate(shared, architecture, kZero3)), "");
  const std::vector<const Program*> few(1, &world[0]);
  EXPECT_EQ(message(validate(few, architecture, kZero3)), "1 programs for 2 ranks");
  swap_with_next(world[1], 0);
  const std::vector<const Program*> differing{&world[0], &world[1]};
  EXPECT_EQ(message(validate(differing, architecture, kZero3)),
            "rank 0, 0 gather UNSHARD g0: never runs: its group does not meet here");
}

// Rank 1 takes a gather up before a reduction: two lanes do not mind, one queue hangs.
TEST(Validate, OneQueueIsStricter) {
  const auto architecture = small_llama(1);
  World world = world_of(architecture, kZero3);
  rearrange(world[1], [&] {
    std::vector<int> ids = ids_of(world[1]);
    std::rotate(ids.begin() + 8, ids.begin() + 9, ids.begin() + 11);  // 9 10 8
    return ids;
  }());
  EXPECT_EQ(message(validate(world, architecture, kZero3, Queues::kByLane)), "");
  EXPECT_EQ(message(validate(world, architecture, kZero3, Queues::kOne)),
            "rank 0, 8 reduce REDUCE_GRAD g2 m0 < 7: never runs: its group does not meet here");
}

Layout any_layout() {
  return {.dp = *rc::gen::inRange(1, 3),
          .shard = *rc::gen::inRange(1, 4),
          .zero = *rc::gen::inRange(1, 4),
          .num_micro_batches = *rc::gen::inRange(1, 4),
          .recompute = *rc::gen::element(recipe::Recompute::kNone, recipe::Recompute::kSelective,
                                         recipe::Recompute::kFull),
          .prefetch = *rc::gen::inRange(0, 4),
          .offload = *rc::gen::element(recipe::Offload::kNone, recipe::Offload::kOptimizer)};
}

enum class Change { kDrop, kDuplicate, kSwap };

// Swaps that change no number a rank makes: of lanes that do not wait for each other, of updates,
// of a gather with another group's, of one micro-batch's end with the next one's start, and of a
// backward with the recomputation of the layer below.
bool harmless_swap(const Action& first, const Action& second) {
  if (first.lane != second.lane) return true;
  if (first.lane == Lane::kGather || first.lane == Lane::kCopyIn)
    return first.group != second.group;
  if (first.kind == Kind::kOptimizer && second.kind == Kind::kOptimizer) return true;
  return first.kind == Kind::kBackward &&
         (second.kind == Kind::kForward || second.kind == Kind::kRecompute);
}

RC_GTEST_PROP(Validate, EveryChangeIsCaughtOrHarmless, ()) {
  const auto architecture = small_llama(*rc::gen::inRange(1, 4), *rc::gen::arbitrary<bool>());
  const Layout layout = any_layout();
  const World legal = world_of(architecture, layout);
  RC_ASSERT(validate(legal, architecture, layout, Queues::kOne).has_value());
  const auto change = *rc::gen::element(Change::kDrop, Change::kDuplicate, Change::kSwap);
  const int id = *rc::gen::inRange(0, static_cast<int>(legal[0].actions.size()) - 1);
  World changed = legal;
  for (Program& program : changed) {
    if (change == Change::kDrop) drop(program, id);
    if (change == Change::kDuplicate) duplicate(program, id);
    if (change == Change::kSwap) swap_with_next(program, id);
  }
  const std::string said = message(validate(changed, architecture, layout));
  const Action& first = legal[0].actions[static_cast<std::size_t>(id)];
  const Action& second = legal[0].actions[static_cast<std::size_t>(id) + 1];
  RC_LOG() << to_text(legal[0]) << static_cast<int>(change) << " at " << id << "\n";
  RC_ASSERT(!said.empty() || (change == Change::kSwap && harmless_swap(first, second)));
}

// A collective that one rank leaves out or repeats is never harmless.
RC_GTEST_PROP(Validate, OneRankAloneIsCaught, ()) {
  const auto architecture = small_llama(1);
  Layout layout = any_layout();
  layout.dp = 2;
  World world = world_of(architecture, layout);
  Program& program = *rc::gen::inRange(0, 2) == 0 ? world.front() : world.back();
  const int id = *rc::gen::inRange(0, static_cast<int>(program.actions.size()));
  *rc::gen::arbitrary<bool>() ? drop(program, id) : duplicate(program, id);
  const std::string rank = fmt::format("rank {},", program.rank);
  RC_ASSERT(message(validate(world, architecture, layout)).starts_with(rank));
}

}  // namespace
}  // namespace ptrain::program
