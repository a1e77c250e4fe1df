// Offloaded optimizer state in programs: the pass, its validator, its bytes.

#include <gtest/gtest.h>

#include <functional>

#include "core/model/optimizer.h"
#include "core/program/compile.h"
#include "core/program/memory.h"
#include "core/program/offload_plan.h"
#include "core/program/passes/passes.h"
#include "core/program/validate.h"
#include "tests/support/small_llama.h"

namespace ptrain::program {
namespace {

using mesh::Layout;
using support::small_llama;

const Layout kOffloaded{.offload = recipe::Offload::kOptimizer};

model::Architecture with_optimizer(int num_blocks, recipe::OptimizerKind kind,
                                   double momentum = 0.95) {
  auto architecture = small_llama(num_blocks);
  recipe::Optimizer optimizer;
  optimizer.kind = kind;
  optimizer.momentum = momentum;
  model::use_optimizer(architecture, optimizer);
  return architecture;
}

std::string passed(const model::Architecture& architecture, const Layout& layout) {
  Draft draft(program_from_text("program 1 rank 0/1 shape s\n0 reduce GRAD_NORM\n"
                                "1 compute OPTIMIZER g0 < 0\n2 compute OPTIMIZER g1 < 0\n"
                                "3 compute OPTIMIZER g2 < 0\n4 compute OPTIMIZER g3 < 0\n")
                  ->actions);
  std::string text;
  for (const Action& action : add_offload(std::move(draft), {architecture, layout}).finish())
    text += to_text(action) + "\n";
  return text;
}

// Two groups are fetched before all else; each further one once the buffer before it is free. The
// larger two of 512, 496, 496 and 520 elements take turns in the first buffer.
TEST(Offload, FetchesAheadAsFarAsTheRingReaches) {
  EXPECT_EQ(passed(small_llama(2), kOffloaded),
            "0 copy_in FETCH g0 buffer=0\n1 copy_in FETCH g1 buffer=1\n2 reduce GRAD_NORM\n"
            "3 compute OPTIMIZER g0 < 0 2\n4 copy_out OFFLOAD g0 buffer=0 < 3\n"
            "5 copy_in FETCH g3 buffer=0 < 4\n"
            "6 compute OPTIMIZER g1 < 1 2\n7 copy_out OFFLOAD g1 buffer=1 < 6\n"
            "8 copy_in FETCH g2 buffer=1 < 7\n"
            "9 compute OPTIMIZER g3 < 2 5\n10 copy_out OFFLOAD g3 buffer=0 < 9\n"
            "11 compute OPTIMIZER g2 < 2 8\n12 copy_out OFFLOAD g2 buffer=1 < 11\n");
}

TEST(Offload, LeavesAloneWhatIsResidentOrKeepsNoState) {
  const std::string untouched =
      "0 reduce GRAD_NORM\n1 compute OPTIMIZER g0 < 0\n2 compute OPTIMIZER g1 < 0\n"
      "3 compute OPTIMIZER g2 < 0\n4 compute OPTIMIZER g3 < 0\n";
  EXPECT_EQ(passed(small_llama(2), {}), untouched);
  const auto plain = with_optimizer(2, recipe::OptimizerKind::kSgd, 0);
  EXPECT_EQ(passed(plain, kOffloaded), untouched);
  EXPECT_EQ(ring_buffers(plain), (std::vector<int>{-1, -1, -1, -1}));
  EXPECT_TRUE(ring_order(ring_buffers(plain)).empty());
}

// What is said after a change of the legal program of three groups: ids 0 and 1 are FETCHes, 8 is
// GRAD_NORM, 9 to 15 OPTIMIZER, OFFLOAD and FETCH in turn.
std::string broken(const std::function<void(std::vector<Action>&)>& change) {
  const auto architecture = small_llama(1);
  Program program = *compile({architecture, kOffloaded, "short"}, 0);
  EXPECT_TRUE(validate(std::span(&program, 1), architecture, kOffloaded));
  change(program.actions);
  const auto status = validate(std::span(&program, 1), architecture, kOffloaded);
  return status ? "" : status.error().message;
}

// Without the action, and without waits for it.
void drop(std::vector<Action>& actions, int id) {
  actions.erase(actions.begin() + id);
  for (Action& action : actions) {
    if (action.id > id) action.id -= 1;
    std::erase(action.after, id);
    for (int& other : action.after) other -= other > id;
  }
}

Action& at(std::vector<Action>& actions, int id) { return actions[static_cast<std::size_t>(id)]; }

TEST(Offload, BreachesAreRefused) {
  using Actions = std::vector<Action>;
  EXPECT_EQ(broken([](Actions& a) { drop(a, 0); }),
            "rank 0, 8 compute OPTIMIZER g0 < 7: the state of g0 is not fetched");
  EXPECT_EQ(broken([](Actions& a) { at(a, 9).after = {8}; }),
            "rank 0, 9 compute OPTIMIZER g0 < 8: does not wait for its FETCH");
  EXPECT_EQ(broken([](Actions& a) { at(a, 11).after.clear(); }),
            "rank 0, 11 copy_in FETCH g2 buffer=0: does not wait for the OFFLOAD before it");
  EXPECT_EQ(broken([](Actions& a) { at(a, 10).after.clear(); }),
            "rank 0, 10 copy_out OFFLOAD g0 buffer=0: does not wait for its OPTIMIZER");
  EXPECT_EQ(broken([](Actions& a) { drop(a, 10); }),
            "rank 0, 10 copy_in FETCH g2 buffer=0: the state of g0 is in its buffer");
  EXPECT_EQ(broken([](Actions& a) { drop(a, 15); }),
            "rank 0, end: the state of g2 is never offloaded");
  EXPECT_EQ(broken([](Actions& a) {
              at(a, 1).attributes = {{"buffer", "0"}};
            }),
            "rank 0, 1 copy_in FETCH g1 buffer=0: the buffer of g1 is 1");
  EXPECT_EQ(broken([](Actions& a) {
              at(a, 1).group = 0, at(a, 1).attributes = {{"buffer", "0"}};
            }),
            "rank 0, 1 copy_in FETCH g0 buffer=0: the state of g0 is in its buffer");
  EXPECT_EQ(broken([](Actions& a) { at(a, 1).lane = Lane::kGather; }),
            "rank 0, 1 gather FETCH g1 buffer=1: belongs on lane copy_in");
  EXPECT_EQ(
      broken([](Actions& a) { at(a, 13).kind = Kind::kFetch, at(a, 13).lane = Lane::kCopyIn; }),
      "rank 0, 13 copy_in FETCH g1 buffer=1 < 12: the state of g1 is in its buffer");
}

TEST(Offload, OfALayoutThatKeepsStateIsRefused) {
  const auto architecture = small_llama(1);
  const Program program = *compile({architecture, kOffloaded, "short"}, 0);
  const auto status = validate(std::span(&program, 1), architecture, {});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            "rank 0, 0 copy_in FETCH g0 buffer=0: nothing is offloaded in this layout");
}

TEST(Offload, EvaluationFetchesNothing) {
  const auto architecture = small_llama(1);
  const Program program = *compile({architecture, kOffloaded, "short", Purpose::kEvaluate}, 0);
  for (const Action& action : program.actions) EXPECT_EQ(action.kind, Kind::kForward);
  EXPECT_TRUE(validate(std::span(&program, 1), architecture, kOffloaded));
}

// AdamW keeps 8 bytes an element. 2000 embeddings of 8: 128000 bytes, 32 pages (31.25); a block of
// 496: 1 page; head and norm 16008: 32 pages. The blocks take turns in the second buffer; each has
// a page more, to begin on one.
TEST(Offload, RingAndStoreByHand) {
  const auto architecture = small_llama(2, false, 2000);
  const auto plans = mesh::plan_buffers(architecture, 1);
  const OffloadPlan plan = plan_offload(architecture, plans, {});
  EXPECT_EQ(plan.buffers, (std::vector<std::int64_t>{33 * 4096, 2 * 4096}));
  EXPECT_EQ(plan.store_bytes, (32 + 1 + 1 + 32) * 4096);
  EXPECT_EQ(plan.groups[3].offset, 34 * 4096);
  EXPECT_EQ(plan.groups[3].bytes, 32 * 4096);
  EXPECT_EQ(plan.groups[3].buffer, 0);
  const Program program = *compile({architecture, kOffloaded, "short"}, 0);
  const auto optimizer = static_cast<std::size_t>(MemoryClass::kOptimizer);
  EXPECT_EQ(peak_bytes(program, {architecture, kOffloaded, plans, 10})[optimizer].value, 35 * 4096);
  EXPECT_EQ(peak_bytes(program, {architecture, {}, plans, 10})[optimizer].value,
            (16000 + 2 * 496 + 16008) * 8);
}

}  // namespace
}  // namespace ptrain::program
