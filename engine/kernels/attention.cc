#include "engine/kernels/attention.h"

#include <algorithm>
#include <cmath>

#include "engine/base/engine_error.h"
#include "engine/base/planted.h"
#include "engine/kernels/attention_softmax.h"
#include "engine/kernels/matmul.h"

namespace ptrain::kernels {
namespace {

constexpr std::int64_t kBlockRows = 64;  // queries whose scores are held at a time

// The columns of one head in the fused buffer.
struct Heads {
  Tensor query, key, value;
};

Heads heads_of(const AttentionShape& shape, const Tensor& qkv, std::int64_t head) {
  const std::int64_t kv_head = head / (shape.num_heads / shape.num_kv_heads);
  const std::int64_t keys = shape.query_cols(), values = keys + shape.num_kv_heads * shape.head_dim;
  return {qkv.columns(head * shape.head_dim, shape.head_dim),
          qkv.columns(keys + kv_head * shape.head_dim, shape.head_dim),
          qkv.columns(values + kv_head * shape.head_dim, shape.head_dim)};
}

// Scratch [rows, cols], rows apart by a multiple of a cache line.
struct Scratch {
  Scratch(Arena& arena, DType dtype, std::int64_t rows, std::int64_t cols)
      : buffer(arena, program::MemoryClass::kTemporary, rows * padded(cols) * size_of(dtype)),
        tensor{buffer.data(), dtype, rows, cols, padded(cols)} {}
  static std::int64_t padded(std::int64_t cols) { return (cols + 15) / 16 * 16; }
  Buffer buffer;
  Tensor tensor;
};

// Queries [first, first + rows) of a document and the keys they may see, [0, first + rows).
struct QueryBlock {
  std::int64_t first, rows;
  std::int64_t keys() const { return first + rows; }
};

QueryBlock block_at(std::int64_t first, std::int64_t num_queries) {
  return {first, std::min(kBlockRows, num_queries - first)};
}

Tensor corner(const Tensor& scratch, const QueryBlock& block) {
  return scratch.row_range(0, block.rows).columns(0, block.keys());
}

template <class T>
ScoreBlock<T> score_block(const Tensor& scores, const QueryBlock& block, std::int64_t head_dim) {
  const T scale = T{1} / std::sqrt(static_cast<T>(head_dim));
  return {scores.as<T>(), scores.stride, block.rows, block.first, scale};
}

template <class T>
void forward_block(const Heads& heads, const QueryBlock& block, const Tensor& scratch,
                   const Tensor& output, const Tensor& log_sum_exp) {
  const Tensor scores = corner(scratch, block);
  matmul(heads.query.row_range(block.first, block.rows), heads.key.row_range(0, block.keys()),
         scores, {.transpose_b = true});
  T sums[kBlockRows];
  const Tensor out = output.row_range(block.first, block.rows);
  const Tensor lse = log_sum_exp.row_range(block.first, block.rows);
  const SoftmaxForward<T> softmax{score_block<T>(scores, block, out.cols),
                                  lse.as<T>(),
                                  lse.stride,
                                  out.as<T>(),
                                  out.stride,
                                  out.cols,
                                  sums};
  softmax_forward(softmax);
  matmul(scores, heads.value.row_range(0, block.keys()), out);
  normalise(softmax);
}

// What the blocks of all query heads of one key head work with.
struct BackwardScratch {
  Tensor scores, dscores;  // [kBlockRows, n]
  Tensor dkey, dvalue;     // [n, head_dim]
};

// `accumulate`: dkey and dvalue hold sums already, in rows [0, block.keys()).
template <class T>
void backward_block(const Heads& heads, const AttentionGradient& in, const QueryBlock& block,
                    const BackwardScratch& scratch, bool accumulate) {
  const Tensor scores = corner(scratch.scores, block), dscores = corner(scratch.dscores, block);
  const Tensor query = heads.query.row_range(block.first, block.rows);
  const Tensor key = heads.key.row_range(0, block.keys());
  const Tensor output = in.output.row_range(block.first, block.rows);
  const Tensor doutput = in.doutput.row_range(block.first, block.rows);
  const Tensor lse = in.log_sum_exp.row_range(block.first, block.rows);
  matmul(query, key, scores, {.transpose_b = true});
  matmul(doutput, heads.value.row_range(0, block.keys()), dscores, {.transpose_b = true});
  softmax_backward(SoftmaxBackward<T>{score_block<T>(scores, block, query.cols), dscores.as<T>(),
                                      lse.as<T>(), lse.stride, output.as<T>(), output.stride,
                                      doutput.as<T>(), doutput.stride, query.cols});
  const MatmulOptions summed{.transpose_a = true, .accumulate = accumulate};
  matmul(scores, doutput, scratch.dvalue.row_range(0, block.keys()), summed);
  matmul(dscores, query, scratch.dkey.row_range(0, block.keys()), summed);
  matmul(dscores, key, query);  // this block's queries are not read again
}

template <class T>
void copy_to(const Tensor& from, const Tensor& to) {
  for (std::int64_t t = 0; t < from.rows; ++t)
    std::copy_n(from.as<T>() + t * from.stride, from.cols, to.as<T>() + t * to.stride);
}

// One key head and the query heads that read it. Blocks run from the last, which sees all keys and
// so may
// overwrite the sums of the key and value gradients, to the first.
template <class T>
void backward_group(const AttentionShape& shape, const AttentionGradient& in, const Tensor& qkv,
                    std::int64_t kv_head, const BackwardScratch& scratch) {
  const std::int64_t group = shape.num_heads / shape.num_kv_heads;
  const std::int64_t last = (qkv.rows - 1) / kBlockRows * kBlockRows;
  for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    const std::int64_t begin = head * shape.head_dim;
    const bool is_first = head == kv_head * group || planted(Bug::kHeadsNotSummed);
    const AttentionGradient of_head{in.output.columns(begin, shape.head_dim),
                                    in.log_sum_exp.columns(head, 1),
                                    in.doutput.columns(begin, shape.head_dim)};
    for (std::int64_t first = last; first >= 0; first -= kBlockRows)
      backward_block<T>(heads_of(shape, qkv, head), of_head, block_at(first, qkv.rows), scratch,
                        first != last || !is_first);
  }
  const Heads heads = heads_of(shape, qkv, kv_head * group);
  copy_to<T>(scratch.dkey, heads.key);
  copy_to<T>(scratch.dvalue, heads.value);
}

}  // namespace

void attention(const AttentionShape& shape, const Tensor& qkv, const Tensor& output,
               const Tensor& log_sum_exp, Arena& arena) {
  PT_CHECK(qkv.cols == shape.qkv_cols() && output.cols == shape.query_cols());
  const Scratch scores(arena, qkv.dtype, std::min(kBlockRows, qkv.rows), qkv.rows);
  dispatch(qkv.dtype, [&]<class T>(T) {
    for (std::int64_t head = 0; head < shape.num_heads; ++head)
      for (std::int64_t first = 0; first < qkv.rows; first += kBlockRows)
        forward_block<T>(heads_of(shape, qkv, head), block_at(first, qkv.rows), scores.tensor,
                         output.columns(head * shape.head_dim, shape.head_dim),
                         log_sum_exp.columns(head, 1));
  });
}

void attention_backward(const AttentionShape& shape, const AttentionGradient& in, const Tensor& qkv,
                        Arena& arena) {
  PT_CHECK(qkv.cols == shape.qkv_cols() && in.output.cols == shape.query_cols());
  const std::int64_t block = std::min(kBlockRows, qkv.rows);
  const Scratch scores(arena, qkv.dtype, block, qkv.rows);
  const Scratch dscores(arena, qkv.dtype, block, qkv.rows);
  const Scratch dkey(arena, qkv.dtype, qkv.rows, shape.head_dim);
  const Scratch dvalue(arena, qkv.dtype, qkv.rows, shape.head_dim);
  const BackwardScratch scratch{scores.tensor, dscores.tensor, dkey.tensor, dvalue.tensor};
  dispatch(qkv.dtype, [&]<class T>(T) {
    for (std::int64_t kv_head = 0; kv_head < shape.num_kv_heads; ++kv_head)
      backward_group<T>(shape, in, qkv, kv_head, scratch);
  });
}

}  // namespace ptrain::kernels
