#include "engine/kernels/attention_before.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/base/engine_error.h"
#include "engine/kernels/attention_heads.h"
#include "engine/kernels/attention_room.h"
#include "engine/kernels/attention_softmax.h"
#include "engine/kernels/matmul.h"
#include "engine/kernels/pair_attention.h"

namespace ptrain::kernels {
namespace {

using program::kScoreRows;

// Queries [first, first + rows) of the piece and the keys that one of them sees at least.
struct Block {
  std::int64_t first, rows, first_key, keys;
  bool sees_none() const { return keys <= 0; }
  Tensor queries(const Tensor& tensor) const { return tensor.row_range(first, rows); }
  Tensor seen(const Tensor& tensor) const { return tensor.row_range(first_key, keys); }
};

Block block_at(const AttentionShape& shape, const Before& before, std::int64_t first) {
  const std::int64_t oldest = before.distance + first + 1 - shape.window;
  const std::int64_t first_key = shape.window > 0 ? std::max<std::int64_t>(0, oldest) : 0;
  return {first, std::min(kScoreRows, before.query.rows - first), first_key,
          before.key_value.rows - first_key};
}

template <class T>
ScoreBlock<T> score_block(const AttentionShape& shape, const Before& before, const Tensor& scores,
                          const Block& block) {
  return {scores.as<T>(),
          scores.stride,
          block.rows,
          before.distance + block.first - block.first_key,
          block.keys,
          T{1} / std::sqrt(static_cast<T>(shape.root_of())),
          static_cast<T>(shape.softcap),
          shape.window};
}

// Two softmaxes over different keys become one over both: their outputs weighted by their sums of
// exponentials. `part` is not normalised and belongs to sum and lse; the other has a normalised
// row.
template <class T>
void merge_row(const T* part, T part_sum, T part_lse, std::int64_t cols, T* row, T& lse) {
  if (part_lse == -std::numeric_limits<T>::infinity()) return;
  const T largest = std::max(lse, part_lse);
  const T mine = std::exp(lse - largest), other = std::exp(part_lse - largest);
  const T total = mine + other;
  const T keep = mine / total, add = other / total / part_sum;
  for (std::int64_t i = 0; i < cols; ++i) row[i] = row[i] * keep + part[i] * add;
  lse = largest + std::log(total);
}

struct ForwardScratch {
  Tensor scores, output, log_sum_exp;  // of a block
};

template <class T>
void forward_block(const AttentionShape& shape, const Before& before, const KeyValue& head,
                   const Tensor& query, const Block& block, const ForwardScratch& scratch,
                   const HeadOutput& to) {
  const Tensor scores = scratch.scores.row_range(0, block.rows).columns(0, block.keys);
  const Tensor part = scratch.output.row_range(0, block.rows);
  matmul(block.queries(query), block.seen(head.key), scores, {.transpose_b = true});
  T sums[kScoreRows];
  softmax_forward(SoftmaxForward<T>{score_block<T>(shape, before, scores, block),
                                    scratch.log_sum_exp.as<T>(), scratch.log_sum_exp.stride,
                                    part.as<T>(), part.stride, part.cols, sums});
  matmul(scores, block.seen(head.value), part);
  const Tensor output = block.queries(to.output), lse = block.queries(to.log_sum_exp);
  for (std::int64_t r = 0; r < block.rows; ++r)
    merge_row(part.as<T>() + r * part.stride, sums[r],
              scratch.log_sum_exp.as<T>()[r * scratch.log_sum_exp.stride], part.cols,
              output.as<T>() + r * output.stride, lse.as<T>()[r * lse.stride]);
}

struct BackwardScratch {
  Tensor scores, dscores;  // of a block
};

// One head and what its backward reads and adds to.
struct HeadGradient {
  Tensor query, dquery;
  KeyValue head, gradient;
  AttentionGradient in;
};

template <class T>
void backward_block(const AttentionShape& shape, const Before& before, const HeadGradient& head,
                    const Block& block, const BackwardScratch& scratch) {
  const Tensor scores = scratch.scores.row_range(0, block.rows).columns(0, block.keys);
  const Tensor dscores = scratch.dscores.row_range(0, block.rows).columns(0, block.keys);
  const Tensor query = block.queries(head.query), key = block.seen(head.head.key);
  const Tensor output = block.queries(head.in.output), doutput = block.queries(head.in.doutput);
  const Tensor lse = block.queries(head.in.log_sum_exp);
  matmul(query, key, scores, {.transpose_b = true});
  matmul(doutput, block.seen(head.head.value), dscores, {.transpose_b = true});
  softmax_backward(SoftmaxBackward<T>{score_block<T>(shape, before, scores, block), dscores.as<T>(),
                                      lse.as<T>(), lse.stride, output.as<T>(), output.stride,
                                      doutput.as<T>(), doutput.stride, output.cols});
  const MatmulOptions summed{.transpose_a = true, .accumulate = true};
  matmul(scores, doutput, block.seen(head.gradient.value), summed);
  matmul(dscores, query, block.seen(head.gradient.key), summed);
  matmul(dscores, key, block.queries(head.dquery), {.accumulate = true});
}

void check(const AttentionShape& shape, const Before& before) {
  PT_CHECK(before.query.cols == shape.query_cols() &&
           before.key_value.cols == shape.key_value_cols());
  PT_CHECK(before.distance >= before.key_value.rows);
}

}  // namespace

void attention_before(const AttentionShape& shape, const Before& before, const Tensor& output,
                      const Tensor& log_sum_exp, Arena& arena) {
  check(shape, before);
  if (uses_pair_attention(shape))
    return pair_attention(shape, before, {output, log_sum_exp, true}, arena);
  const DType dtype = before.query.dtype;
  const std::int64_t rows = std::min(kScoreRows, before.query.rows);
  const std::int64_t values = shape.values_of_head();
  AttentionRoom room(arena,
                     bytes_of(shape, dtype).before(before.query.rows, before.key_value.rows));
  const ForwardScratch scratch{room.tensor(dtype, rows, before.key_value.rows),
                               room.tensor(dtype, rows, values), room.tensor(dtype, rows, 1)};
  dispatch(dtype, [&]<class T>(T) {
    for (std::int64_t head = 0; head < shape.num_heads; ++head) {
      const KeyValue key_value = key_value_of(shape, before.key_value, head);
      const Tensor query = before.query.columns(head * shape.head_dim, shape.head_dim);
      for (std::int64_t first = 0; first < query.rows; first += kScoreRows) {
        const Block block = block_at(shape, before, first);
        if (block.sees_none()) continue;
        forward_block<T>(shape, before, key_value, query, block, scratch,
                         head_of(shape, {output, log_sum_exp}, head));
      }
    }
  });
}

void attention_before_backward(const AttentionShape& shape, const Before& before,
                               const AttentionGradient& in, const Tensor& dquery,
                               const Tensor& dkey_value, Arena& arena) {
  check(shape, before);
  if (uses_pair_attention(shape))
    return pair_attention_backward(shape, before, in, {dquery, dkey_value, true}, arena);
  const DType dtype = before.query.dtype;
  const std::int64_t rows = std::min(kScoreRows, before.query.rows);
  const std::int64_t values = shape.values_of_head(), size = shape.head_dim;
  AttentionRoom room(
      arena, bytes_of(shape, dtype).before_backward(before.query.rows, before.key_value.rows));
  const BackwardScratch scratch{room.tensor(dtype, rows, before.key_value.rows),
                                room.tensor(dtype, rows, before.key_value.rows)};
  dispatch(dtype, [&]<class T>(T) {
    for (std::int64_t head = 0; head < shape.num_heads; ++head) {
      const HeadGradient of_head{
          before.query.columns(head * size, size),
          dquery.columns(head * size, size),
          key_value_of(shape, before.key_value, head),
          key_value_of(shape, dkey_value, head),
          {in.output.columns(head * values, values), in.log_sum_exp.columns(head, 1),
           in.doutput.columns(head * values, values)}};
      for (std::int64_t first = 0; first < before.query.rows; first += kScoreRows) {
        const Block block = block_at(shape, before, first);
        if (!block.sees_none()) backward_block<T>(shape, before, of_head, block, scratch);
      }
    }
  });
}

}  // namespace ptrain::kernels
