#include <gtest/gtest.h>

#include "engine/kernels/attention.h"
#include "tests/support/matrix.h"

namespace ptrain::kernels {
namespace {

using test::Doubles;
using test::Matrix;

// Plain; a window shorter and one longer than the kernel's block of queries; softcap and another
// scale; all together.
AttentionShape shape_with(double scalar, double softcap, std::int64_t window) {
  return {.num_heads = 4,
          .num_kv_heads = 2,
          .head_dim = 3,
          .scalar = scalar,
          .softcap = softcap,
          .window = window};
}
const AttentionShape kShape = shape_with(0, 0, 0);

struct Attended {
  Doubles output, log_sum_exp;
};

// The textbook formula, a query and a head at a time.
Attended plain_attention(const AttentionShape& shape, const Doubles& qkv) {
  const std::int64_t size = shape.head_dim, group = shape.num_heads / shape.num_kv_heads;
  Attended result{Doubles::filled(qkv.rows, shape.query_cols(), 0), {qkv.rows, shape.num_heads}};
  for (std::int64_t t = 0; t < qkv.rows; ++t)
    for (std::int64_t head = 0; head < shape.num_heads; ++head) {
      const std::int64_t key = (shape.num_heads + head / group) * size;
      const std::int64_t value = key + shape.num_kv_heads * size;
      std::vector<double> weights;
      double sum = 0;
      const double scalar = shape.scalar > 0 ? shape.scalar : static_cast<double>(size);
      for (std::int64_t s = 0; s <= t; ++s) {
        double score = 0;
        for (std::int64_t j = 0; j < size; ++j) score += qkv(t, head * size + j) * qkv(s, key + j);
        score /= std::sqrt(scalar);
        if (shape.softcap > 0) score = shape.softcap * std::tanh(score / shape.softcap);
        const bool hidden = shape.window > 0 && t - s >= shape.window;
        weights.push_back(hidden ? 0 : std::exp(score));
        sum += weights.back();
      }
      result.log_sum_exp(t, head) = std::log(sum);
      for (std::int64_t s = 0; s <= t; ++s)
        for (std::int64_t j = 0; j < size; ++j)
          result.output(t, head * size + j) +=
              weights[static_cast<std::size_t>(s)] / sum * qkv(s, value + j);
    }
  return result;
}

// Lengths around the kernel's block of 64 queries.
class AttentionLengths : public testing::TestWithParam<std::tuple<std::int64_t, AttentionShape>> {
 protected:
  std::int64_t length() const { return std::get<0>(GetParam()); }
  const AttentionShape& shape() const { return std::get<1>(GetParam()); }
};

TEST_P(AttentionLengths, ForwardIsTheFormula) {
  Arena arena;
  auto qkv = Doubles::random(length(), shape().qkv_cols(), 1, 2);
  Doubles output(length(), shape().query_cols(), 1), log_sum_exp(length(), 4);
  attention(shape(), qkv.view(), output.view(), log_sum_exp.view(), arena);
  const Attended wanted = plain_attention(shape(), qkv);
  EXPECT_LT(test::largest_difference(output, wanted.output), 1e-13);
  EXPECT_LT(test::largest_difference(log_sum_exp, wanted.log_sum_exp), 1e-13);
  EXPECT_TRUE(output.gaps_untouched());

  auto qkv32 = Matrix<float>::random(length(), shape().qkv_cols(), 1, 2);
  Matrix<float> output32(length(), shape().query_cols()), log_sum_exp32(length(), 4);
  attention(shape(), qkv32.view(), output32.view(), log_sum_exp32.view(), arena);
  EXPECT_LT(test::largest_difference(output32, wanted.output), 5e-6);
}

TEST_P(AttentionLengths, GradientIsTheDifference) {
  Arena arena;
  auto qkv = Doubles::random(length(), shape().qkv_cols(), 1, 2);
  auto doutput = Doubles::random(length(), shape().query_cols(), 2);
  Doubles output(length(), shape().query_cols()), log_sum_exp(length(), 4);
  attention(shape(), qkv.view(), output.view(), log_sum_exp.view(), arena);
  Doubles gradient = qkv;
  attention_backward(shape(), {output.view(), log_sum_exp.view(), doutput.view()}, gradient.view(),
                     arena);
  EXPECT_TRUE(gradient.gaps_untouched());
  EXPECT_EQ(arena.live(program::MemoryClass::kTemporary), Bytes{0});
  // Along one random direction: all elements one by one would take seconds.
  const auto direction = Doubles::random(length(), shape().qkv_cols(), 3, 2);
  const auto f = [&](double step) {
    Doubles moved = qkv;
    for (std::int64_t r = 0; r < qkv.rows; ++r)
      for (std::int64_t c = 0; c < qkv.cols; ++c) moved(r, c) += step * direction(r, c);
    return test::dot(plain_attention(shape(), moved).output, doutput);
  };
  EXPECT_NEAR((f(1e-5) - f(-1e-5)) / 2e-5, test::dot(gradient, direction), 2e-6);
}

const auto kShapes =
    testing::Values(kShape, shape_with(5, 0, 0), shape_with(0, 0.7, 0), shape_with(0, 0, 5),
                    shape_with(0, 0, 1), shape_with(0, 0, 100), shape_with(2, 1.3, 70));
INSTANTIATE_TEST_SUITE_P(All, AttentionLengths,
                         testing::Combine(testing::Values(1, 2, 63, 64, 65, 150), kShapes));

class AttentionShapes : public testing::TestWithParam<AttentionShape> {};

TEST_P(AttentionShapes, EveryElementOfTheGradient) {
  Arena arena;
  const AttentionShape& shape = GetParam();
  auto qkv = Doubles::random(9, shape.qkv_cols(), 1), doutput = Doubles::random(9, 12, 2);
  Doubles output(9, 12), log_sum_exp(9, 4);
  attention(shape, qkv.view(), output.view(), log_sum_exp.view(), arena);
  Doubles gradient = qkv;
  attention_backward(shape, {output.view(), log_sum_exp.view(), doutput.view()}, gradient.view(),
                     arena);
  const auto f = [&] { return test::dot(plain_attention(shape, qkv).output, doutput); };
  EXPECT_LT(test::gradient_error(qkv, gradient, f), 1e-8);
}

INSTANTIATE_TEST_SUITE_P(All, AttentionShapes, kShapes);

}  // namespace
}  // namespace ptrain::kernels
