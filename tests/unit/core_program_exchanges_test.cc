#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/mesh/part.h"
#include "core/program/validate.h"
#include "tests/support/compile_world.h"
#include "tests/support/small_model.h"

namespace ptrain::program {
namespace {

model::Architecture whole(const std::string& family) {
  recipe::Model model = support::small_model(family);
  model.vocab_size = 64;
  return *model::make_architecture(model, DType::kFloat32);
}

mesh::Layout layout_of(int tp) {
  mesh::Layout layout;
  layout.tp = tp;
  return layout;
}

Program program_of(const model::Architecture& part, const mesh::Layout& layout) {
  return *compile({part, layout, "test"}, 0);
}

std::string lines_of(const Program& program, int layer, Kind kind) {
  std::string text;
  bool is_inside = false;
  for (const Action& action : program.actions) {
    if (action.layer_first < 0) continue;
    if (action.kind != Kind::kExchange)
      is_inside = action.kind == kind && action.layer_first == layer;
    if (is_inside) text += to_text(action).substr(to_text(action).find(' ') + 1) + "\n";
  }
  return text;
}

TEST(Exchanges, CutAForwardIntoSegments) {
  const auto part = *mesh::part_of(whole("llama"), layout_of(2), 0);
  EXPECT_EQ(lines_of(program_of(part, layout_of(2)), 1, Kind::kForward),
            "compute FORWARD s0 l1.0 m0 keep=all\n"
            "compute EXCHANGE s0 l1.0 m0 kind=all_gather axis=tp token_bytes=64\n"
            "compute FORWARD s0 l1.1 m0 keep=all\n"
            "compute EXCHANGE s0 l1.1 m0 kind=reduce_scatter axis=tp token_bytes=64\n"
            "compute FORWARD s0 l1.2 m0 keep=all\n"
            "compute EXCHANGE s0 l1.2 m0 kind=all_gather axis=tp token_bytes=64\n"
            "compute FORWARD s0 l1.3 m0 keep=all\n"
            "compute EXCHANGE s0 l1.3 m0 kind=reduce_scatter axis=tp token_bytes=64\n"
            "compute FORWARD s0 l1.4 m0 keep=all\n");
}

using Counts = std::map<std::string, int>;  // by kind of exchange

// Those between segments of `kind` in layer `layer`.
Counts counts_of(const Program& program, int layer, Kind kind) {
  Counts counts;
  Kind inside = Kind::kForward;
  for (const Action& action : program.actions) {
    if (action.layer_first != layer) continue;
    if (action.kind != Kind::kExchange)
      inside = action.kind;
    else if (inside == kind)
      counts[std::string(action.attribute("kind"))] += 1;
  }
  return counts;
}

// As Megatron-LM's: the norms see the own tokens, so that each direction gathers and scatters twice
// a block; the inputs of matrices are stashed in parts and gathered again for their gradients.
TEST(Exchanges, AreThoseOfSequenceParallelism) {
  for (const char* family : {"llama", "gpt2", "gemma3"}) {
    auto layout = layout_of(4);
    const auto part = *mesh::part_of(whole(family), layout, 3);
    const Program program = program_of(part, layout);
    EXPECT_EQ(counts_of(program, 1, Kind::kForward),
              (Counts{{"all_gather", 2}, {"reduce_scatter", 2}}));
    EXPECT_EQ(counts_of(program, 1, Kind::kBackward),
              (Counts{{"all_gather", 2 + 2}, {"reduce_scatter", 2}}));
    EXPECT_EQ(counts_of(program, 0, Kind::kForward), (Counts{{"reduce_scatter", 1}}));
    EXPECT_EQ(counts_of(program, 0, Kind::kBackward), (Counts{{"all_gather", 1}}));
    EXPECT_EQ(counts_of(program, 3, Kind::kForward), Counts{});
    EXPECT_EQ(counts_of(program, 3, Kind::kBackward),
              (Counts{{"all_gather", 1}, {"reduce_scatter", 1}}));
  }
}

TEST(Exchanges, AreRepeatedByRecomputation) {
  auto layout = layout_of(2);
  layout.recompute = recipe::Recompute::kFull;
  const auto llama = *mesh::part_of(whole("llama"), layout, 0);
  EXPECT_EQ(counts_of(program_of(llama, layout), 1, Kind::kRecompute),
            (Counts{{"all_gather", 2}, {"reduce_scatter", 1}}));
  const auto gemma = *mesh::part_of(whole("gemma2"), layout, 0);
  EXPECT_EQ(counts_of(program_of(gemma, layout), 1, Kind::kRecompute),
            (Counts{{"all_gather", 2}, {"reduce_scatter", 2}}));
  layout.recompute = recipe::Recompute::kSelective;
  EXPECT_EQ(counts_of(program_of(gemma, layout), 1, Kind::kRecompute), Counts{});
}

// Bytes that a rank gives to exchanges of heads, for each token it has.
std::int64_t ulysses_bytes_of_a_token(int ranks) {
  recipe::Model model = support::small_model("llama");
  model.hidden_size = 32;
  model.num_attention_heads = model.num_key_value_heads = 8;
  const auto whole = *model::make_architecture(model, DType::kFloat32);
  const mesh::Layout layout{.cp = ranks, .ulysses = ranks};
  std::int64_t bytes = 0;
  for (const Action& action : program_of(*mesh::part_of(whole, layout, 0), layout).actions)
    if (action.attribute("axis") == "ulysses")
      bytes += std::stoll(std::string(action.attribute("token_bytes")));
  return bytes;
}

// A rank of twice as many has as many tokens of a row that is twice as long.
TEST(Exchanges, OfUlyssesRanksTakeAsManyBytesWhenRowsAndRanksDouble) {
  const std::int64_t of_two = ulysses_bytes_of_a_token(2);
  EXPECT_GT(of_two, 0);
  EXPECT_EQ(ulysses_bytes_of_a_token(4), of_two);
  EXPECT_EQ(ulysses_bytes_of_a_token(8), of_two);
}

TEST(Exchanges, OneRankHasNone) {
  const auto part = *mesh::part_of(whole("llama"), layout_of(1), 0);
  const Program program = program_of(part, layout_of(1));
  EXPECT_TRUE(std::ranges::none_of(program.actions, [](const Action& action) {
    return action.kind == Kind::kExchange || action.segment >= 0;
  }));
}

class World {
 public:
  explicit World(mesh::Layout layout) : layout_(layout) {
    part_ = *mesh::part_of(whole("gemma2"), layout, 0);
    programs_ = support::compile_world({part_, layout_, "test"});
  }
  // The place of `kind` in every program.
  template <class F>
  void change(Kind kind, const F& f) {
    for (Program& program : programs_) {
      auto& actions = program.actions;
      f(actions, std::ranges::find_if(actions, [&](const Action& action) {
          return action.kind == kind && action.segment == 1;
        }));
    }
  }
  std::string check() const {
    const auto status = validate(programs_, part_, layout_);
    return status ? "" : status.error().message;
  }

 private:
  mesh::Layout layout_;
  model::Architecture part_;
  std::vector<Program> programs_;
};

TEST(Exchanges, LegalWorldsAreValid) {
  for (const int zero : {1, 2, 3})
    for (const auto recompute :
         {recipe::Recompute::kNone, recipe::Recompute::kSelective, recipe::Recompute::kFull}) {
      mesh::Layout layout = layout_of(2);
      layout.dp = layout.shard = 2;
      layout.zero = zero;
      layout.recompute = recompute;
      layout.num_micro_batches = 3;
      EXPECT_EQ(World(layout).check(), "") << mesh::to_string(layout);
    }
}

void expect_broken(const World& world, const char* what) {
  EXPECT_NE(world.check().find(what), std::string::npos) << world.check();
}

TEST(Exchanges, WrongOnesAreNamed) {
  World other_kind(layout_of(2));
  other_kind.change(Kind::kExchange, [](auto&, auto exchange) {
    exchange->attributes.front().second = "all_reduce";
  });
  expect_broken(other_kind, "the layer's code needs reduce_scatter over tp");

  World other_segment(layout_of(2));
  other_segment.change(Kind::kForward, [](auto&, auto segment) { segment->segment = 2; });
  expect_broken(other_segment, "segment 0 ran last");

  World twice(layout_of(2));
  twice.change(Kind::kForward, [](auto&, auto segment) {
    Action again = *std::prev(segment);
    again.id = segment->id;
    *segment = again;
  });
  expect_broken(twice, "comes at the wrong segment");

  World whole_call(layout_of(2));
  whole_call.change(Kind::kForward, [](auto&, auto segment) { segment->segment = -1; });
  expect_broken(whole_call, "runs in segments");
}

}  // namespace
}  // namespace ptrain::program
