#include <gtest/gtest.h>

#include "engine/base/engine_error.h"
#include "engine/kernels/attention_before.h"
#include "tests/support/matrix.h"

namespace ptrain::kernels {
namespace {

using test::Doubles;

AttentionShape shape_with(std::int64_t window, double softcap, std::int64_t value_dim) {
  return {.num_heads = 4,
          .num_kv_heads = 2,
          .head_dim = 3,
          .value_dim = value_dim,
          .softcap = softcap,
          .window = window};
}

// A document cut into three pieces, each of which attends to itself and then to those before it.
class AttentionBefore : public testing::TestWithParam<AttentionShape> {
 protected:
  void SetUp() override {
    try {
      Arena arena;
      auto qkv = Doubles::filled(1, shape().qkv_cols(), 0);
      Doubles output(1, shape().output_cols()), lse(1, shape().num_heads);
      attention_before(shape(), {queries(qkv.view()), keys_and_values(qkv.view()), 1},
                       output.view(), lse.view(), arena);
    } catch (const EngineError&) {
      GTEST_SKIP() << "not on these kernels";
    }
  }

  static constexpr std::int64_t kCuts[] = {0, 5, 70, 150};
  static constexpr std::int64_t kLength = 150;

  const AttentionShape& shape() const { return GetParam(); }
  static Tensor piece(const Tensor& rows, int i) {
    return rows.row_range(kCuts[i], kCuts[i + 1] - kCuts[i]);
  }
  Tensor queries(const Tensor& qkv) const { return qkv.columns(0, shape().query_cols()); }
  Tensor keys_and_values(const Tensor& qkv) const {
    return qkv.columns(shape().query_cols(), shape().qkv_cols() - shape().query_cols());
  }
  Before before(const Tensor& qkv, int query, int key) const {
    return {queries(piece(qkv, query)), keys_and_values(piece(qkv, key)),
            kCuts[query] - kCuts[key]};
  }
  void attend_in_pieces(const Tensor& qkv, const Tensor& output, const Tensor& lse, Arena& arena) {
    for (int i = 0; i < 3; ++i) {
      attention(shape(), piece(qkv, i), piece(output, i), piece(lse, i), arena);
      for (int j = 0; j < i; ++j)
        attention_before(shape(), before(qkv, i, j), piece(output, i), piece(lse, i), arena);
    }
  }
};

TEST_P(AttentionBefore, PiecesMakeTheWhole) {
  Arena arena;
  auto qkv = Doubles::random(kLength, shape().qkv_cols(), 1, 2);
  Doubles output(kLength, shape().output_cols(), 1), lse(kLength, 4);
  Doubles wanted_output(kLength, shape().output_cols(), 1), wanted_lse(kLength, 4);
  attention(shape(), qkv.view(), wanted_output.view(), wanted_lse.view(), arena);
  attend_in_pieces(qkv.view(), output.view(), lse.view(), arena);
  EXPECT_LT(test::largest_difference(output, wanted_output), 1e-13);
  EXPECT_LT(test::largest_difference(lse, wanted_lse), 1e-13);
  EXPECT_TRUE(output.gaps_untouched());
}

TEST_P(AttentionBefore, GradientsOfPiecesAddUpToTheWhole) {
  Arena arena;
  auto qkv = Doubles::random(kLength, shape().qkv_cols(), 1, 2);
  auto doutput = Doubles::random(kLength, shape().output_cols(), 2);
  Doubles output(kLength, shape().output_cols()), lse(kLength, 4);
  attend_in_pieces(qkv.view(), output.view(), lse.view(), arena);
  Doubles wanted = qkv;
  attention_backward(shape(), {output.view(), lse.view(), doutput.view()}, wanted.view(), arena);

  Doubles sum = Doubles::filled(kLength, shape().qkv_cols(), 0);
  for (int i = 0; i < 3; ++i) {
    const AttentionGradient in{piece(output.view(), i), piece(lse.view(), i),
                               piece(doutput.view(), i)};
    for (int j = 0; j < i; ++j)
      attention_before_backward(shape(), before(qkv.view(), i, j), in,
                                queries(piece(sum.view(), i)),
                                keys_and_values(piece(sum.view(), j)), arena);
  }
  for (int i = 0; i < 3; ++i)
    attention_backward(shape(),
                       {piece(output.view(), i), piece(lse.view(), i), piece(doutput.view(), i)},
                       piece(qkv.view(), i), arena);
  for (std::int64_t r = 0; r < kLength; ++r)
    for (std::int64_t c = 0; c < qkv.cols; ++c) sum(r, c) += qkv(r, c);
  EXPECT_LT(test::largest_difference(sum, wanted), 1e-12);
  EXPECT_EQ(arena.live(program::MemoryClass::kTemporary), Bytes{0});
}

// Plain; windows that end inside a piece, before it, and leave some queries of a block no key;
// softcap; values of another width.
INSTANTIATE_TEST_SUITE_P(All, AttentionBefore,
                         testing::Values(shape_with(0, 0, 0), shape_with(20, 0, 0),
                                         shape_with(1, 0, 0), shape_with(100, 0, 0),
                                         shape_with(0, 0.7, 0), shape_with(40, 0.9, 5)));

}  // namespace
}  // namespace ptrain::kernels
