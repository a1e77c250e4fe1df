#include <gtest/gtest.h>
#include <omp.h>

#include "engine/base/engine_error.h"
#include "engine/kernels/attention_before.h"
#include "engine/kernels/own_gemm.h"
#include "tests/support/matrix.h"

namespace ptrain::kernels {
namespace {

using test::Doubles;
using Floats = test::Matrix<float>;

AttentionShape pairs_of(AttentionShape shape) {
  shape.products = DType::kBFloat16;
  return shape;
}

double norm(const Doubles& a) { return std::sqrt(test::dot(a, a)); }

// |a - b| / |b|, of all elements.
double apart(const Floats& a, const Doubles& b) {
  Doubles difference(b.rows, b.cols);
  for (std::int64_t r = 0; r < b.rows; ++r)
    for (std::int64_t c = 0; c < b.cols; ++c)
      difference(r, c) = static_cast<double>(a(r, c)) - b(r, c);
  return norm(difference) / norm(b);
}

// Numbers of bfloat16, so that only what the kernel makes itself is rounded.
struct Inputs {
  Inputs(const AttentionShape& shape, std::int64_t length)
      : qkv(test::exactly(test::Matrix<BFloat16>::random(length, shape.qkv_cols(), 1))),
        doutput(test::exactly(test::Matrix<BFloat16>::random(length, shape.output_cols(), 2))) {}
  Doubles qkv, doutput;
};

Floats floats_of(const Doubles& from, std::int64_t gap = 0) {
  Floats result(from.rows, from.cols, gap);
  for (std::int64_t r = 0; r < from.rows; ++r)
    for (std::int64_t c = 0; c < from.cols; ++c) result(r, c) = static_cast<float>(from(r, c));
  return result;
}

template <class M>
struct Attended {
  Attended(const AttentionShape& shape, M input, M doutput)
      : gradient(input),
        output(input.rows, shape.output_cols(), 3),
        log_sum_exp(input.rows, shape.num_heads, 1) {
    attention(shape, gradient.view(), output.view(), log_sum_exp.view(), arena);
    attention_backward(shape, {output.view(), log_sum_exp.view(), doutput.view()}, gradient.view(),
                       arena);
  }
  Arena arena;
  M gradient, output, log_sum_exp;
};

class PairAttention : public testing::TestWithParam<std::tuple<std::int64_t, AttentionShape>> {
 protected:
  void SetUp() override {
    if (!has_own_products()) GTEST_SKIP() << "this processor has no units for it";
    try {
      attended();
    } catch (const EngineError&) {
      GTEST_SKIP() << "not on these kernels";
    }
  }
  std::int64_t length() const { return std::get<0>(GetParam()); }
  const AttentionShape& shape() const { return std::get<1>(GetParam()); }
  Attended<Floats> attended() const {
    const Inputs in(shape(), length());
    return {pairs_of(shape()), floats_of(in.qkv, 2), floats_of(in.doutput)};
  }
};

// The most that bfloat16 rounds off a number, of itself.
constexpr double kRounding = 1.0 / 256;

// In float64 attention is the formula (engine_kernels_attention_test.cc). Probabilities and the
// gradients of scores are rounded.
TEST_P(PairAttention, IsAttentionButForRounding) {
  const Inputs in(shape(), length());
  const Attended<Doubles> wanted(shape(), in.qkv, in.doutput);
  const Attended<Floats> found = attended();
  EXPECT_LT(test::largest_difference(found.log_sum_exp, wanted.log_sum_exp), 1e-5);
  EXPECT_LT(apart(found.output, wanted.output), kRounding);
  EXPECT_LT(apart(found.gradient, wanted.gradient), 3 * kRounding);
  EXPECT_TRUE(found.output.gaps_untouched());
  EXPECT_TRUE(found.log_sum_exp.gaps_untouched());
  EXPECT_TRUE(found.gradient.gaps_untouched());
  EXPECT_EQ(found.arena.live(program::MemoryClass::kTemporary), Bytes{0});
}

TEST_P(PairAttention, BitsAreTheSameOnAnyNumberOfThreads) {
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  const Attended<Floats> alone = attended();
  omp_set_num_threads(3);
  const Attended<Floats> shared = attended();
  omp_set_num_threads(threads);
  EXPECT_EQ(alone.output.values, shared.output.values);
  EXPECT_EQ(alone.gradient.values, shared.gradient.values);
}

Doubles doubles_of(const Floats& from) {
  Doubles result(from.rows, from.cols);
  for (std::int64_t r = 0; r < from.rows; ++r)
    for (std::int64_t c = 0; c < from.cols; ++c) result(r, c) = static_cast<double>(from(r, c));
  return result;
}

// A document whose tokens from kCut on are a piece of their own, as where ranks share it: each
// piece attends to itself, and then the second to the first.
struct InPieces {
  static constexpr std::int64_t kCut = 70;

  InPieces(const AttentionShape& whole, const Inputs& in)
      : shape(pairs_of(whole)),
        qkv(floats_of(in.qkv)),
        gradient(qkv),
        doutput(floats_of(in.doutput)),
        output(qkv.rows, shape.output_cols()),
        log_sum_exp(qkv.rows, shape.num_heads) {
    for (const bool second : {false, true})
      attention(shape, of(qkv, second), of(output, second), of(log_sum_exp, second), arena);
    attention_before(shape, before(qkv), of(output, true), of(log_sum_exp, true), arena);
    for (const bool second : {false, true})
      attention_backward(shape, given(second), of(gradient, second), arena);
    const Before to = before(gradient);
    attention_before_backward(shape, before(qkv), given(true), to.query, to.key_value, arena);
  }

  Tensor of(Floats& all, bool second) const {
    return all.view().row_range(second ? kCut : 0, second ? all.rows - kCut : kCut);
  }
  AttentionGradient given(bool second) {
    return {of(output, second), of(log_sum_exp, second), of(doutput, second)};
  }
  Before before(Floats& all) const {
    const std::int64_t queries = shape.query_cols(), others = shape.qkv_cols() - queries;
    return {of(all, true).columns(0, queries), of(all, false).columns(queries, others), kCut};
  }

  AttentionShape shape;
  Floats qkv, gradient, doutput, output, log_sum_exp;
  Arena arena;
};

// Keys come in other blocks, which changes the order of sums in float32 alone: all numbers are
// rounded to bfloat16 alike, but for those within float32's rounding of a tie.
TEST_P(PairAttention, PiecesRoundAsTheWholeDoes) {
  if (length() <= InPieces::kCut) return;
  const Attended<Floats> whole = attended();
  try {
    const InPieces pieces(shape(), Inputs(shape(), length()));
    EXPECT_LT(apart(pieces.output, doubles_of(whole.output)), 3e-5);
    EXPECT_LT(apart(pieces.log_sum_exp, doubles_of(whole.log_sum_exp)), 1e-6);
    EXPECT_LT(apart(pieces.gradient, doubles_of(whole.gradient)), 3e-5);
  } catch (const EngineError&) {
    GTEST_SKIP() << "not on these kernels";
  }
}

// Panels of 32 and 64 columns and both, columns that fill none, values narrower than keys, windows
// within a block of 64 queries and over several, softcap, query heads that share keys or don't.
INSTANTIATE_TEST_SUITE_P(
    All, PairAttention,
    testing::Combine(testing::Values(1, 2, 63, 64, 65, 150, 300),
                     testing::Values(AttentionShape{4, 2, 32}, AttentionShape{2, 2, 64},
                                     AttentionShape{4, 1, 8}, AttentionShape{2, 1, 80},
                                     AttentionShape{1, 1, 256}, AttentionShape{2, 2, 24, 16},
                                     AttentionShape{2, 1, 96, 128, 50, 3},
                                     AttentionShape{2, 1, 32, 0, 0, 0, 1},
                                     AttentionShape{2, 1, 32, 0, 0, 0, 40},
                                     AttentionShape{4, 2, 16, 0, 7, 0.9, 100})));

// A later block whose scores are larger by so much that e^ of the difference is no float.
TEST(PairAttentionScores, MayGrowFromBlockToBlock) {
  if (!has_own_products()) GTEST_SKIP() << "this processor has no units for it";
  const AttentionShape shape = pairs_of({1, 1, 2});
  Floats qkv(128, 6), output(128, 2), log_sum_exp(128, 1);
  for (std::int64_t t = 0; t < 128; ++t)
    for (std::int64_t c = 0; c < 6; ++c)
      qkv(t, c) = c < 2 ? 16.0F : c < 4 ? static_cast<float>(t) : t < 127 ? 1.0F : 5.0F;
  Arena arena;
  attention(shape, qkv.view(), output.view(), log_sum_exp.view(), arena);
  // The last key's score is above the one before by 16 * 2 / sqrt(2).
  const double rest = 1 / (1 + std::exp(16 * 2 / std::sqrt(2.0)));
  EXPECT_NEAR(output(127, 0), 5 - 4 * rest, 5 * kRounding);
  EXPECT_NEAR(log_sum_exp(127, 0), 127 * 16 * 2 / std::sqrt(2.0), 1e-3);
  EXPECT_NEAR(output(63, 0), 1, kRounding);
}

}  // namespace
}  // namespace ptrain::kernels
