#pragma once

#include <algorithm>
#include <cmath>

#include "engine/kernels/attention_before.h"
#include "engine/kernels/attention_room.h"
#include "engine/kernels/attention_softmax.h"
#include "engine/kernels/pair_products.h"

// What both passes of pair attention share. Block b of a piece of a document holds its rows from
// b * kPairBlock on, at most kPairBlock of them.
namespace ptrain::kernels {

inline constexpr std::int64_t kMostHeadDim = 256;  // what is packed on the stack

inline Tensor block_of(const Tensor& rows, std::int64_t block) {
  const std::int64_t first = block * kPairBlock;
  return rows.row_range(first, std::min(kPairBlock, rows.rows - first));
}

inline FloatRows floats_of(const Tensor& tensor) {
  return {tensor.as<float>(), tensor.stride, tensor.rows, tensor.cols};
}

// Rows of one head in blocks, each packed to multiply with its transpose.
class TransposedBlocks {
 public:
  TransposedBlocks(std::int64_t num_blocks, std::int64_t cols, AttentionRoom& room)
      : num_pairs_(cols / 2), words_(room.words(num_blocks * num_pairs_ * kPairBlock)) {}

  void pack(const Tensor& rows, std::int64_t block) const {
    pack_transposed(floats_of(block_of(rows, block)), at(block));
  }
  RightOperand operand(std::int64_t block) const { return {at(block), num_pairs_}; }

 private:
  Word* at(std::int64_t block) const { return words_ + block * num_pairs_ * kPairBlock; }
  std::int64_t num_pairs_;
  Word* words_;
};

inline Tensor scores_of(float* scores, std::int64_t rows) {
  return contiguous(scores, DType::kFloat32, rows, kPairBlock);
}

// A block of queries and the blocks of keys that it sees.
struct SeenBlocks {
  SeenBlocks(const AttentionShape& of_heads, const Before& in, std::int64_t query_block)
      : shape(of_heads),
        num_keys(in.key_value.rows),
        first_query(in.distance + query_block * kPairBlock),
        num_queries(std::min(kPairBlock, in.query.rows - query_block * kPairBlock)) {
    const std::int64_t oldest = shape.window > 0 ? first_query + 1 - shape.window : 0;
    begin = std::max<std::int64_t>(0, oldest) / kPairBlock;
    end = divide_up(std::min(num_keys, first_query + num_queries), kPairBlock);
  }

  // Scores [num_queries, kPairBlock], which are 0 where there is no key.
  ScoreBlock<float> scores(std::int64_t key_block, float* data) const {
    const std::int64_t first_key = key_block * kPairBlock;
    return {data,
            kPairBlock,
            num_queries,
            first_query - first_key,
            std::min(kPairBlock, num_keys - first_key),
            1 / std::sqrt(static_cast<float>(shape.root_of())),
            static_cast<float>(shape.softcap),
            shape.window};
  }

  const AttentionShape& shape;
  std::int64_t num_keys, first_query, num_queries;  // counted from the first key
  std::int64_t begin, end;                          // of the blocks of keys
};

}  // namespace ptrain::kernels
