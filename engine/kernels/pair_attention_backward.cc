#include "engine/kernels/attention_heads.h"
#include "engine/kernels/pair_attention.h"
#include "engine/kernels/pair_attention_block.h"

namespace ptrain::kernels {
namespace {

// What queries of a head, the gradients of their outputs and those of their scores are multiplied
// with: for all queries that see it.
struct BackwardOperands {
  BackwardOperands(const AttentionShape& shape, std::int64_t num_keys, AttentionRoom& room)
      : num_blocks(divide_up(num_keys, kPairBlock)),
        keys_across(num_blocks, shape.head_dim, room),
        values_across(num_blocks, shape.values_of_head(), room),
        keys(room.words(words_of_operand(num_pairs(), shape.head_dim))),
        dscores(room.words(kLeftRows * num_pairs())) {}

  std::int64_t num_pairs() const { return num_blocks * kBlockPairs; }

  void fill(const KeyValue& head) const {
#pragma omp parallel for schedule(static) if (num_blocks > 1)
    for (std::int64_t b = 0; b < num_blocks; ++b) {
      keys_across.pack(head.key, b);
      values_across.pack(head.value, b);
      pack_pairs(floats_of(block_of(head.key, b)), b * kBlockPairs, num_pairs(), keys);
    }
  }

  std::int64_t num_blocks;
  TransposedBlocks keys_across, values_across;
  Word* keys;
  Word* dscores;  // of a block of queries and all keys, as a left operand
};

// A block of queries of one head.
struct QueryBlock {
  SeenBlocks seen;
  Tensor query;
  AttentionGradient of;
  Tensor dquery;  // added to where `accumulate`
  bool accumulate;
};

// It as both operands: rows on the left, and on the right.
struct PackedQueries {
  explicit PackedQueries(const QueryBlock& block) {
    pack(block.query, query, query_rows);
    pack(block.of.doutput, doutput, doutput_rows);
  }
  static void pack(const Tensor& rows, Word* left, Word* right) {
    pair_columns(floats_of(rows), rows.cols / 2, left);
    pack_pairs(floats_of(rows), 0, kBlockPairs, right);
  }
  alignas(64) Word query[kLeftRows * kMostHeadDim / 2], doutput[kLeftRows * kMostHeadDim / 2];
  alignas(64) Word query_rows[kBlockPairs * kMostHeadDim], doutput_rows[kBlockPairs * kMostHeadDim];
};

// Adds to the gradients of a block of keys, and keeps those of scores.
void backward_keys(const BackwardOperands& packed, const QueryBlock& queries,
                   const PackedQueries& left, std::int64_t key_block, const KeyValue& gradient) {
  alignas(64) float scores[kPairBlock * kPairBlock], dscores[kPairBlock * kPairBlock];
  // Its columns are rows of a left operand, whose last tile reads behind them.
  alignas(64) Word across[kPairBlock * kBlockPairs + kNarrowRows] = {};
  const AttentionGradient& of = queries.of;
  const std::int64_t rows = queries.query.rows;
  const std::int64_t pairs = queries.query.cols / 2, value_pairs = of.output.cols / 2;
  multiply_pairs({left.query, pairs, 1}, packed.keys_across.operand(key_block), {0, pairs, false},
                 scores_of(scores, rows));
  multiply_pairs({left.doutput, value_pairs, 1}, packed.values_across.operand(key_block),
                 {0, value_pairs, false}, scores_of(dscores, rows));
  softmax_backward(SoftmaxBackward<float>{
      queries.seen.scores(key_block, scores), dscores, of.log_sum_exp.as<float>(),
      of.log_sum_exp.stride, of.output.as<float>(), of.output.stride, of.doutput.as<float>(),
      of.doutput.stride, of.output.cols});
  const RowWords columns{across, 1, kPairBlock};
  const PairSum all{0, kBlockPairs, true};
  pair_rows({scores, kPairBlock, rows, kPairBlock}, kBlockPairs, kPairBlock, across);
  multiply_pairs(columns, {left.doutput_rows, kBlockPairs}, all, gradient.value);
  const FloatRows of_scores{dscores, kPairBlock, rows, kPairBlock};
  pair_rows(of_scores, kBlockPairs, kPairBlock, across);
  multiply_pairs(columns, {left.query_rows, kBlockPairs}, all, gradient.key);
  pair_columns(of_scores, packed.num_pairs(), packed.dscores + key_block * kBlockPairs);
}

void backward_block(const BackwardOperands& packed, const QueryBlock& queries,
                    const KeyValue& gradient) {
  const PackedQueries left(queries);
  const std::int64_t begin = queries.seen.begin, end = queries.seen.end;
  if (begin >= end) return;
#pragma omp parallel for schedule(static) if (end - begin > 1)
  for (std::int64_t key = begin; key < end; ++key)
    backward_keys(packed, queries, left, key,
                  {block_of(gradient.key, key), block_of(gradient.value, key)});
  multiply_pairs({packed.dscores + begin * kBlockPairs, packed.num_pairs(), 1},
                 {packed.keys, packed.num_pairs()},
                 {begin * kBlockPairs, end * kBlockPairs, queries.accumulate}, queries.dquery);
}

void set_zero(const Tensor& tensor) {
  for (std::int64_t r = 0; r < tensor.rows; ++r)
    std::fill_n(tensor.as<float>() + r * tensor.stride, tensor.cols, 0.0F);
}

}  // namespace

void pair_attention_backward(const AttentionShape& shape, const Before& in,
                             const AttentionGradient& of, const PairGradient& to, Arena& arena) {
  const std::int64_t num_queries = in.query.rows, num_keys = in.key_value.rows;
  const program::AttentionBytes bytes = bytes_of(shape, in.query.dtype);
  AttentionRoom room(arena, to.accumulate ? bytes.before_backward(num_queries, num_keys)
                                          : bytes.inside_backward(num_keys));
  const BackwardOperands packed(shape, num_keys, room);
  const std::int64_t group = shape.num_heads / shape.num_kv_heads, size = shape.head_dim;
  for (std::int64_t head = 0; head < shape.num_heads; ++head) {
    const KeyValue gradient = key_value_of(shape, to.dkey_value, head);
    if (head % group == 0) {
      packed.fill(key_value_of(shape, in.key_value, head));
      if (!to.accumulate) set_zero(gradient.key), set_zero(gradient.value);
    }
    const Tensor query = in.query.columns(head * size, size);
    const Tensor dquery = to.dquery.columns(head * size, size);
    const auto [output, lse] = head_of(shape, {of.output, of.log_sum_exp}, head);
    const Tensor doutput = head_of(shape, of.doutput, head);
    for (std::int64_t b = 0; b < divide_up(num_queries, kPairBlock); ++b)
      backward_block(packed,
                     {SeenBlocks(shape, in, b),
                      block_of(query, b),
                      {block_of(output, b), block_of(lse, b), block_of(doutput, b)},
                      block_of(dquery, b),
                      to.accumulate},
                     gradient);
  }
}

}  // namespace ptrain::kernels
