#include "engine/kernels/pair_attention.h"

#include "engine/kernels/attention_heads.h"
#include "engine/kernels/online_softmax.h"
#include "engine/kernels/own_gemm.h"
#include "engine/kernels/pair_attention_block.h"

namespace ptrain::kernels {
namespace {

// What queries of a head are multiplied with, then their probabilities: for all that see it.
struct KeysAndValues {
  KeysAndValues(const AttentionShape& shape, std::int64_t num_keys, AttentionRoom& room)
      : num_blocks(divide_up(num_keys, kPairBlock)),
        keys(num_blocks, shape.head_dim, room),
        values(room.words(words_of_operand(num_pairs(), shape.values_of_head()))) {}

  std::int64_t num_pairs() const { return num_blocks * kBlockPairs; }

  void fill(const KeyValue& head) const {
#pragma omp parallel for schedule(static) if (num_blocks > 1)
    for (std::int64_t b = 0; b < num_blocks; ++b) {
      keys.pack(head.key, b);
      pack_pairs(floats_of(block_of(head.value, b)), b * kBlockPairs, num_pairs(), values);
    }
  }

  std::int64_t num_blocks;
  TransposedBlocks keys;
  Word* values;
};

// Of a block of queries of one head.
struct QueryBlock {
  SeenBlocks seen;
  Tensor query;
  PairOutput to;
};

void forward_block(const KeysAndValues& packed, const QueryBlock& in) {
  alignas(64) Word query[kLeftRows * kMostHeadDim / 2], probabilities[kLeftRows * kBlockPairs];
  alignas(64) float scores[kPairBlock * kPairBlock];
  float exponent[kPairBlock], sums[kPairBlock];
  const std::int64_t pairs = in.query.cols / 2, rows = in.query.rows;
  const auto& [output, log_sum_exp, accumulate] = in.to;
  pair_columns(floats_of(in.query), pairs, query);
  OnlineSoftmax softmax{in.seen.scores(in.seen.begin, scores),
                        exponent,
                        sums,
                        output.as<float>(),
                        output.stride,
                        output.cols,
                        log_sum_exp.as<float>(),
                        log_sum_exp.stride};
  begin_softmax(softmax, accumulate);
  for (std::int64_t key = in.seen.begin; key < in.seen.end; ++key) {
    multiply_pairs({query, pairs, 1}, packed.keys.operand(key), {0, pairs, false},
                   scores_of(scores, rows));
    softmax.block = in.seen.scores(key, scores);
    add_to_softmax(softmax);
    pair_columns({scores, kPairBlock, rows, kPairBlock}, kBlockPairs, probabilities);
    multiply_pairs({probabilities, kBlockPairs, 1}, {packed.values, packed.num_pairs()},
                   {key * kBlockPairs, (key + 1) * kBlockPairs, true}, output);
  }
  finish_softmax(softmax);
}

}  // namespace

bool uses_pair_attention(const AttentionShape& shape) {
  const auto fits = [](std::int64_t dim) { return dim % 2 == 0 && dim <= kMostHeadDim; };
  return shape.products == DType::kBFloat16 && fits(shape.head_dim) &&
         fits(shape.values_of_head()) && has_own_products();
}

void pair_attention(const AttentionShape& shape, const Before& in, const PairOutput& to,
                    Arena& arena) {
  const std::int64_t num_queries = in.query.rows, num_keys = in.key_value.rows;
  const program::AttentionBytes bytes = bytes_of(shape, in.query.dtype);
  AttentionRoom room(arena,
                     to.accumulate ? bytes.before(num_queries, num_keys) : bytes.inside(num_keys));
  const KeysAndValues packed(shape, num_keys, room);
  const std::int64_t group = shape.num_heads / shape.num_kv_heads;
  for (std::int64_t head = 0; head < shape.num_heads; ++head) {
    if (head % group == 0) packed.fill(key_value_of(shape, in.key_value, head));
    const Tensor query = in.query.columns(head * shape.head_dim, shape.head_dim);
    const HeadOutput of_head = head_of(shape, {to.output, to.log_sum_exp}, head);
    const std::int64_t num_blocks = divide_up(num_queries, kPairBlock);
#pragma omp parallel for schedule(static, 1) if (num_blocks > 1)
    for (std::int64_t b = 0; b < num_blocks; ++b)
      forward_block(
          packed, {SeenBlocks(shape, in, b),
                   block_of(query, b),
                   {block_of(of_head.output, b), block_of(of_head.log_sum_exp, b), to.accumulate}});
  }
}

}  // namespace ptrain::kernels
