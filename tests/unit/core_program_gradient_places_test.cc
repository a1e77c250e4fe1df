#include <gtest/gtest.h>

#include "core/program/compile.h"
#include "core/program/gradient_places.h"
#include "tests/support/small_llama.h"

namespace ptrain::program {
namespace {

GradientPlaces places_of(int num_blocks, mesh::Layout layout, bool tied = false) {
  const auto architecture = support::small_llama(num_blocks, tied);
  layout.shared_window = true;
  const auto buffers = mesh::plan_buffers(architecture, layout.shard);
  return place_gradients({architecture, layout, buffers, 10});
}

// Embedding 512, block 496, head 520; places are multiples of 16, so 528 for the head.
TEST(GradientPlaces, ReplicasKeepAllGradients) {
  const GradientPlaces places = places_of(1, {.dp = 2});
  EXPECT_EQ(places.offsets, (std::vector<std::int64_t>{528, 528 + 512, 0}));
  EXPECT_EQ(places.elements, 528 + 512 + 496);
}

// Backward writes head, block 3, 2, 1, embedding; two of them at a time, so they take turns.
TEST(GradientPlaces, ShardedGradientsTakeTurns) {
  const GradientPlaces places = places_of(3, {.shard = 2, .zero = 3});
  EXPECT_EQ(places.offsets, (std::vector<std::int64_t>{0, 512, 0, 528, 0}));
  EXPECT_EQ(places.elements, 528 + 496);
}

// The next micro-batch's head meets the embedding that is still being reduced: a ring of five,
// which two places cannot serve. By hand, the largest first: the head at 0, the embedding behind
// it, block 1 at 0, block 2 behind block 1, and block 3 behind both that and the head.
TEST(GradientPlaces, TheEmbeddingMeetsTheNextHead) {
  const GradientPlaces places = places_of(3, {.shard = 2, .zero = 3, .num_micro_batches = 8});
  EXPECT_EQ(places.offsets, (std::vector<std::int64_t>{528, 0, 496, 992, 0}));
  EXPECT_EQ(places.elements, 3 * 496);
}

// Whatever the layout: groups that hold whole gradients together have places apart.
TEST(GradientPlaces, NoTwoAtOnceInOnePlace) {
  for (const bool tied : {false, true})
    for (const int zero : {2, 3})
      for (const int shard : {2, 3, 5})
        for (const int micro_batches : {1, 2, 5}) {
          mesh::Layout layout{.shard = shard, .zero = zero, .num_micro_batches = micro_batches};
          const auto architecture = support::small_llama(4, tied);
          const auto buffers = mesh::plan_buffers(architecture, shard);
          const GradientPlaces places = places_of(4, layout, tied);
          MemoryMeter meter({architecture, layout, buffers, 10});
          const Program program = *compile({architecture, layout, "short"}, 0);
          for (const Action& action : program.actions) {
            meter.begin(action);
            for (const int a : meter.held_gradients())
              for (const int b : meter.held_gradients()) {
                if (a == b) continue;
                const auto i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(b);
                EXPECT_TRUE(places.offsets[i] + buffers[i].total() <= places.offsets[j] ||
                            places.offsets[j] + buffers[j].total() <= places.offsets[i])
                    << a << " and " << b << " at " << to_text(action);
                EXPECT_LE(places.offsets[i] + buffers[i].total(), places.elements);
              }
            meter.end(action);
          }
        }
}

// A rank's parameters and gradients in a window: the shards by hand, no gather.
TEST(GradientPlaces, AreTheGradientBytesOfAWindow) {
  const auto architecture = support::small_llama(1);
  const mesh::Layout layout{.shard = 2, .zero = 3, .num_micro_batches = 2, .shared_window = true};
  const auto buffers = mesh::plan_buffers(architecture, 2);
  const BytesByClass peak =
      peak_bytes(*compile({architecture, layout, "short"}, 0), {architecture, layout, buffers, 10});
  const auto bytes = [&](MemoryClass memory_class) {
    return peak[static_cast<std::size_t>(memory_class)].value;
  };
  EXPECT_EQ(bytes(MemoryClass::kParameters), 764 * 4);
  EXPECT_EQ(bytes(MemoryClass::kGather), 0);
  // Head and embedding meet, and so do both with the block.
  EXPECT_EQ(bytes(MemoryClass::kGradients), (764 + 528 + 512 + 496) * 4);
}

}  // namespace
}  // namespace ptrain::program
