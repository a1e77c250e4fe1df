#include <gtest/gtest.h>

#include "core/mesh/part.h"
#include "core/program/compile.h"
#include "core/program/validate.h"
#include "tests/support/small_model.h"

namespace ptrain::program {
namespace {

// The programs of all ranks, each of its own part of the model.
class World {
 public:
  explicit World(const mesh::Layout& layout) : layout_(layout) {
    recipe::Model model = support::small_model("gpt2");
    model.vocab_size = 64;
    model.num_hidden_layers = 4;
    model.tie_word_embeddings = true;
    const auto whole = *model::make_architecture(model, DType::kFloat32);
    for (int rank = 0; rank < layout.num_ranks(); ++rank)
      parts_.push_back(*mesh::part_of(whole, layout, rank));
    for (int rank = 0; rank < layout.num_ranks(); ++rank)
      programs_.push_back(*compile({parts_[static_cast<std::size_t>(rank)], layout_, "mix"}, rank));
  }
  Program& program(std::size_t rank) { return programs_[rank]; }
  std::string check() const {
    std::vector<const Program*> programs;
    std::vector<const model::Architecture*> parts;
    for (std::size_t rank = 0; rank < programs_.size(); ++rank) {
      programs.push_back(&programs_[rank]);
      parts.push_back(&parts_[rank]);
    }
    const auto status = validate(programs, parts, layout_);
    return status ? "" : status.error().message;
  }

 private:
  mesh::Layout layout_;
  std::vector<model::Architecture> parts_;
  std::vector<Program> programs_;
};

TEST(Mixes, OfTensorRanksAndStagesAreValid) {
  for (const char* schedule : {"gpipe", "1f1b", "zb_h1", "zb_v"})
    for (const int zero : {1, 3})
      for (const auto recompute : {recipe::Recompute::kNone, recipe::Recompute::kFull}) {
        const int num_virtual = std::string_view(schedule) == "zb_v" ? 2 : 1;
        mesh::Layout layout{.shard = 2, .tp = 2, .pp = 2, .num_virtual = num_virtual};
        layout.schedule = schedule;
        layout.zero = zero;
        layout.num_micro_batches = 4;
        layout.recompute = recompute;
        EXPECT_EQ(World(layout).check(), "") << mesh::to_string(layout);
      }
}

mesh::Layout context_layout(int ring, int ulysses, int tp) {
  mesh::Layout layout{.shard = 2, .cp = ring * ulysses, .ulysses = ulysses, .tp = tp};
  layout.num_micro_batches = 2;
  return layout;
}

TEST(Mixes, OfRanksThatShareRowsAreValid) {
  for (const auto& [ring, ulysses] : {std::pair{2, 1}, std::pair{1, 2}, std::pair{2, 2}})
    for (const int tp : {1, 2}) {
      const mesh::Layout layout = context_layout(ring, ulysses, tp);
      EXPECT_EQ(World(layout).check(), "") << mesh::to_string(layout);
    }
}

// Each rank by itself may take micro-batches in any order; those of one ring, or that exchange
// heads, must take them in the same.
TEST(Mixes, RanksThatShareRowsMeetInTheirExchanges) {
  for (const auto& [ring, ulysses] : {std::pair{2, 1}, std::pair{1, 2}}) {
    World world(context_layout(ring, ulysses, 1));
    for (Action& action : world.program(1).actions)
      if (action.micro_batch >= 0) action.micro_batch = 1 - action.micro_batch;
    EXPECT_NE(world.check().find("never runs: its group does not meet here"), std::string::npos)
        << world.check();
  }
}

// The first segment waits for all that the call needs.
TEST(Mixes, ACallThatBeginsBeforeItsStreamArrivesIsRefused) {
  mesh::Layout layout{.tp = 2, .pp = 2};
  layout.schedule = "1f1b";
  World world(layout);
  for (const std::size_t rank : {0U, 1U})
    for (Action& action : world.program(rank).actions)
      if (action.kind == Kind::kBackward && action.segment == 0 && action.layer_first == 2)
        action.after.clear();
  EXPECT_NE(world.check().find("BACKWARD s0 l2.6 m0: does not wait for"), std::string::npos)
      << world.check();
}

}  // namespace
}  // namespace ptrain::program
