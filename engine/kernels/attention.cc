#include "engine/kernels/attention.h"

#include <algorithm>
#include <cmath>

#include "engine/base/engine_error.h"
#include "engine/base/planted.h"
#include "engine/kernels/attention_heads.h"
#include "engine/kernels/attention_room.h"
#include "engine/kernels/attention_softmax.h"
#include "engine/kernels/matmul.h"
#include "engine/kernels/pair_attention.h"

namespace ptrain::kernels {
namespace {

using program::kScoreRows;

// The columns of one head in the fused buffer.
struct Heads {
  Tensor query, key, value;
};

Heads heads_of(const AttentionShape& shape, const Tensor& qkv, std::int64_t head) {
  const std::int64_t kv_head = planted(Bug::kHeadsInterleaved)
                                   ? head % shape.num_kv_heads
                                   : head / (shape.num_heads / shape.num_kv_heads);
  const std::int64_t values = shape.values_of_head();
  return {qkv.columns(head * shape.head_dim, shape.head_dim),
          qkv.columns(shape.query_cols() + kv_head * shape.head_dim, shape.head_dim),
          qkv.columns(shape.first_value() + kv_head * values, values)};
}

// Queries [first, first + rows) of a document and the keys they may see, [first_key, first + rows).
struct QueryBlock {
  std::int64_t first, rows, first_key;
  std::int64_t keys() const { return first + rows - first_key; }
  Tensor seen(const Tensor& keys_or_values) const {
    return keys_or_values.row_range(first_key, keys());
  }
};

QueryBlock block_at(const AttentionShape& shape, std::int64_t first, std::int64_t num_queries) {
  const std::int64_t first_key =
      shape.window > 0 ? std::max<std::int64_t>(0, first + 1 - shape.window) : 0;
  return {first, std::min(kScoreRows, num_queries - first), first_key};
}

Tensor corner(const Tensor& scratch, const QueryBlock& block) {
  return scratch.row_range(0, block.rows).columns(0, block.keys());
}

template <class T>
ScoreBlock<T> score_block(const AttentionShape& shape, const Tensor& scores,
                          const QueryBlock& block) {
  const T scale = T{1} / std::sqrt(static_cast<T>(shape.root_of()));
  return {scores.as<T>(),
          scores.stride,
          block.rows,
          block.first - block.first_key,
          block.keys(),
          scale,
          static_cast<T>(shape.softcap),
          shape.window};
}

template <class T>
void forward_block(const AttentionShape& shape, const Heads& heads, const QueryBlock& block,
                   const Tensor& scratch, const HeadOutput& head) {
  const Tensor scores = corner(scratch, block);
  matmul(heads.query.row_range(block.first, block.rows), block.seen(heads.key), scores,
         {.transpose_b = true});
  T sums[kScoreRows];
  const Tensor out = head.output.row_range(block.first, block.rows);
  const Tensor lse = head.log_sum_exp.row_range(block.first, block.rows);
  const SoftmaxForward<T> softmax{score_block<T>(shape, scores, block),
                                  lse.as<T>(),
                                  lse.stride,
                                  out.as<T>(),
                                  out.stride,
                                  out.cols,
                                  sums};
  softmax_forward(softmax);
  matmul(scores, block.seen(heads.value), out);
  normalise(softmax);
}

// What the blocks of all query heads of one key head work with.
struct BackwardScratch {
  Tensor scores, dscores;  // [kScoreRows, n]
  Tensor dkey, dvalue;     // [n, head_dim], [n, value_dim]
};

// One query head and what its backward reads and writes.
struct HeadGradient {
  Heads heads;
  AttentionGradient in;
};

// `accumulate`: dkey and dvalue hold sums already, in the rows of the block's keys.
template <class T>
void backward_block(const AttentionShape& shape, const HeadGradient& head, const QueryBlock& block,
                    const BackwardScratch& scratch, bool accumulate) {
  const Tensor scores = corner(scratch.scores, block), dscores = corner(scratch.dscores, block);
  const Tensor query = head.heads.query.row_range(block.first, block.rows);
  const Tensor key = block.seen(head.heads.key);
  const Tensor output = head.in.output.row_range(block.first, block.rows);
  const Tensor doutput = head.in.doutput.row_range(block.first, block.rows);
  const Tensor lse = head.in.log_sum_exp.row_range(block.first, block.rows);
  matmul(query, key, scores, {.transpose_b = true});
  matmul(doutput, block.seen(head.heads.value), dscores, {.transpose_b = true});
  softmax_backward(SoftmaxBackward<T>{score_block<T>(shape, scores, block), dscores.as<T>(),
                                      lse.as<T>(), lse.stride, output.as<T>(), output.stride,
                                      doutput.as<T>(), doutput.stride, output.cols});
  const MatmulOptions summed{.transpose_a = true, .accumulate = accumulate};
  matmul(scores, doutput, block.seen(scratch.dvalue), summed);
  matmul(dscores, query, block.seen(scratch.dkey), summed);
  matmul(dscores, key, query);  // this block's queries are not read again
}

template <class T>
void copy_to(const Tensor& from, const Tensor& to) {
  for (std::int64_t t = 0; t < from.rows; ++t)
    std::copy_n(from.as<T>() + t * from.stride, from.cols, to.as<T>() + t * to.stride);
}

template <class T>
void set_zero(const Tensor& tensor) {
  for (std::int64_t t = 0; t < tensor.rows; ++t)
    std::fill_n(tensor.as<T>() + t * tensor.stride, tensor.cols, T{0});
}

// One key head and the query heads that read it. Blocks run from the last to the first. Without a
// window the last sees all keys and so may overwrite the sums of the key and value gradients.
template <class T>
void backward_group(const AttentionShape& shape, const AttentionGradient& in, const Tensor& qkv,
                    std::int64_t kv_head, const BackwardScratch& scratch) {
  const std::int64_t group = shape.num_heads / shape.num_kv_heads;
  const std::int64_t last = (qkv.rows - 1) / kScoreRows * kScoreRows;
  const bool sums_begin = shape.window > 0;
  if (sums_begin) set_zero<T>(scratch.dkey), set_zero<T>(scratch.dvalue);
  for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    const std::int64_t values = shape.values_of_head(), begin = head * values;
    const bool is_first = head == kv_head * group || planted(Bug::kHeadsNotSummed);
    const HeadGradient of_head{heads_of(shape, qkv, head),
                               {in.output.columns(begin, values), in.log_sum_exp.columns(head, 1),
                                in.doutput.columns(begin, values)}};
    for (std::int64_t first = last; first >= 0; first -= kScoreRows)
      backward_block<T>(shape, of_head, block_at(shape, first, qkv.rows), scratch,
                        sums_begin || first != last || !is_first);
  }
  const Heads heads = heads_of(shape, qkv, kv_head * group);
  copy_to<T>(scratch.dkey, heads.key);
  copy_to<T>(scratch.dvalue, heads.value);
}

// Queries and keys of the same tokens.
Before inside(const AttentionShape& shape, const Tensor& qkv) {
  return {shape.queries(qkv), shape.key_values(qkv), 0};
}

}  // namespace

void attention(const AttentionShape& shape, const Tensor& qkv, const Tensor& output,
               const Tensor& log_sum_exp, Arena& arena) {
  PT_CHECK(qkv.cols == shape.qkv_cols() && output.cols == shape.output_cols());
  if (uses_pair_attention(shape))
    return pair_attention(shape, inside(shape, qkv), {output, log_sum_exp, false}, arena);
  AttentionRoom room(arena, bytes_of(shape, qkv.dtype).inside(qkv.rows));
  const Tensor scores = room.tensor(qkv.dtype, std::min(kScoreRows, qkv.rows), qkv.rows);
  dispatch(qkv.dtype, [&]<class T>(T) {
    for (std::int64_t head = 0; head < shape.num_heads; ++head)
      for (std::int64_t first = 0; first < qkv.rows; first += kScoreRows)
        forward_block<T>(shape, heads_of(shape, qkv, head), block_at(shape, first, qkv.rows),
                         scores, head_of(shape, {output, log_sum_exp}, head));
  });
}

void attention_backward(const AttentionShape& shape, const AttentionGradient& in, const Tensor& qkv,
                        Arena& arena) {
  PT_CHECK(qkv.cols == shape.qkv_cols() && in.output.cols == shape.output_cols());
  if (uses_pair_attention(shape)) {
    const Before all = inside(shape, qkv);
    return pair_attention_backward(shape, all, in, {all.query, all.key_value, false}, arena);
  }
  AttentionRoom room(arena, bytes_of(shape, qkv.dtype).inside_backward(qkv.rows));
  const std::int64_t block = std::min(kScoreRows, qkv.rows);
  const BackwardScratch scratch{room.tensor(qkv.dtype, block, qkv.rows),
                                room.tensor(qkv.dtype, block, qkv.rows),
                                room.tensor(qkv.dtype, qkv.rows, shape.head_dim),
                                room.tensor(qkv.dtype, qkv.rows, shape.values_of_head())};
  dispatch(qkv.dtype, [&]<class T>(T) {
    for (std::int64_t kv_head = 0; kv_head < shape.num_kv_heads; ++kv_head)
      backward_group<T>(shape, in, qkv, kv_head, scratch);
  });
}

}  // namespace ptrain::kernels
