#include <gtest/gtest.h>

#include "core/program/compile.h"
#include "core/program/memory.h"
#include "tests/support/small_llama.h"

namespace ptrain::program {
namespace {

// Rows of 10 tokens, two a micro-batch: 20 tokens of 4 bytes an element.
BytesByClass peak_of(int num_blocks, mesh::Layout layout, DType compute_dtype = DType::kFloat32) {
  const auto architecture =
      *model::make_architecture(support::small_llama(num_blocks).config, compute_dtype);
  layout.micro_batch = 2;
  const auto buffers = mesh::plan_buffers(architecture, layout.shard);
  const MemoryContext context{architecture, layout, buffers, 10};
  return peak_bytes(*compile({architecture, layout, "short"}, 0), context);
}

std::int64_t bytes(const BytesByClass& all, MemoryClass memory_class) {
  return all[static_cast<std::size_t>(memory_class)].value;
}

TEST(Memory, OneRankByHand) {
  const BytesByClass peak = peak_of(1, {.num_micro_batches = 3});
  EXPECT_EQ(bytes(peak, MemoryClass::kParameters), (512 + 496 + 520) * 4);
  EXPECT_EQ(bytes(peak, MemoryClass::kOptimizer), (512 + 496 + 520) * 8);
  EXPECT_EQ(bytes(peak, MemoryClass::kGradients), (512 + 496 + 520) * 4);
  EXPECT_EQ(bytes(peak, MemoryClass::kStash), (96 + 8) * 20 * 4);
  EXPECT_EQ(bytes(peak, MemoryClass::kGather), 0);
  EXPECT_EQ(bytes(peak, MemoryClass::kTemporary), 0);
}

// All that the test above counts as parameters and optimizer state, and the step of each of the 11
// parameters on 8 bytes. A vector of 8 needs no padding; nothing is copied that is offloaded.
TEST(Memory, ACopyForCheckpointsByHand) {
  const auto architecture =
      *model::make_architecture(support::small_llama(1).config, DType::kFloat32);
  mesh::Layout layout;
  const auto buffers = mesh::plan_buffers(architecture, 1);
  MemoryContext context{architecture, layout, buffers, 10};
  EXPECT_EQ(bytes(persistent_bytes(context), MemoryClass::kCheckpoint), 0);
  context.keeps_copy = true;
  EXPECT_EQ(bytes(persistent_bytes(context), MemoryClass::kCheckpoint),
            (512 + 496 + 520) * 12 + 8 * std::ssize(architecture.parameters));
  layout.offload = recipe::Offload::kOptimizer;
  EXPECT_EQ(bytes(persistent_bytes(context), MemoryClass::kCheckpoint), 0);
}

// Five blocks keep 8 a token each; the peak is the last one run again (96) beside the 4 before it.
TEST(Memory, RecomputationByHand) {
  const BytesByClass peak = peak_of(5, {.recompute = recipe::Recompute::kFull});
  EXPECT_EQ(bytes(peak, MemoryClass::kStash), (4 * 8 + 96) * 20 * 4);
}

// Of 96 a token the norms (8 and 1 each) and the product (12) are made again: five blocks keep 66,
// and the peak is the last one whole beside the 4 before it.
TEST(Memory, SelectiveRecomputationByHand) {
  const BytesByClass peak = peak_of(5, {.recompute = recipe::Recompute::kSelective});
  EXPECT_EQ(bytes(peak, MemoryClass::kStash), (4 * 66 + 96) * 20 * 4);
}

// Shards 256, 248, 260. Gathered at most: block and head. Whole gradients at most: embedding of one
// micro-batch, not waited for yet, and head of the next.
TEST(Memory, Zero3ByHand) {
  const BytesByClass peak = peak_of(1, {.shard = 2, .zero = 3, .num_micro_batches = 2});
  EXPECT_EQ(bytes(peak, MemoryClass::kParameters), 764 * 4);
  EXPECT_EQ(bytes(peak, MemoryClass::kOptimizer), 764 * 8);
  EXPECT_EQ(bytes(peak, MemoryClass::kGather), (496 + 520) * 4);
  EXPECT_EQ(bytes(peak, MemoryClass::kGradients), (764 + 512 + 520) * 4);
}

// ZeRO 1 holds every whole buffer; ranks of three pad 512, 496, 520 to 513, 498, 522.
TEST(Memory, Zero1OfThreeCountsPadding) {
  const BytesByClass peak = peak_of(1, {.shard = 3, .zero = 1, .num_micro_batches = 2});
  EXPECT_EQ(bytes(peak, MemoryClass::kParameters), (171 + 166 + 174) * 4);
  EXPECT_EQ(bytes(peak, MemoryClass::kGather), (513 + 498 + 522) * 4);
  EXPECT_EQ(bytes(peak, MemoryClass::kGradients), (513 + 498 + 522) * 4);
}

// What matrices multiply (norms, attention, gate, up and product: 60 of 96 a token) and the second
// copy of the parameters take 2 bytes an element.
TEST(Memory, BFloat16ByHand) {
  const BytesByClass peak = peak_of(1, {}, DType::kBFloat16);
  EXPECT_EQ(bytes(peak, MemoryClass::kParameters), (512 + 496 + 520) * (4 + 2));
  EXPECT_EQ(bytes(peak, MemoryClass::kOptimizer), (512 + 496 + 520) * 8);
  EXPECT_EQ(bytes(peak, MemoryClass::kGradients), (512 + 496 + 520) * 4);
  EXPECT_EQ(bytes(peak, MemoryClass::kStash), ((36 * 4 + 60 * 2) + 8 * 4) * 20);
}

// Gathers make the copy as they go; in a window each rank keeps its shard's.
TEST(Memory, ShardsInBFloat16ByHand) {
  mesh::Layout layout{.shard = 2, .zero = 3, .num_micro_batches = 2};
  const BytesByClass gathered = peak_of(1, layout, DType::kBFloat16);
  EXPECT_EQ(bytes(gathered, MemoryClass::kParameters), 764 * 4);
  EXPECT_EQ(bytes(gathered, MemoryClass::kGather), (496 + 520) * 2);
  EXPECT_EQ(bytes(gathered, MemoryClass::kGradients), (764 + 512 + 520) * 4);
  layout.shared_window = true;
  const BytesByClass window = peak_of(1, layout, DType::kBFloat16);
  EXPECT_EQ(bytes(window, MemoryClass::kParameters), 764 * (4 + 2));
  EXPECT_EQ(bytes(window, MemoryClass::kGather), 0);
}

TEST(Memory, AllIsGivenBackAtTheEnd) {
  const auto architecture = support::small_llama(3, true);
  for (int zero : {1, 2, 3}) {
    const mesh::Layout layout{.dp = 2, .shard = 2, .zero = zero, .num_micro_batches = 3};
    const auto buffers = mesh::plan_buffers(architecture, layout.shard);
    const MemoryContext context{architecture, layout, buffers, 10};
    MemoryMeter meter(context);
    const Program program = *compile({architecture, layout, "short"}, 0);
    for (const Action& action : program.actions) {
      meter.begin(action);
      meter.end(action);
      for (const Bytes& live : meter.live()) EXPECT_GE(live.value, 0);
    }
    EXPECT_EQ(meter.live(), persistent_bytes(context)) << zero;
  }
}

}  // namespace
}  // namespace ptrain::program
