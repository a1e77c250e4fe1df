#include "engine/layers/head_exchange.h"

#include "engine/base/engine_error.h"
#include "engine/base/planted.h"
#include "engine/kernels/rows.h"
#include "engine/layers/workspace.h"

namespace ptrain::layers {
namespace {

kernels::AttentionShape part_of(kernels::AttentionShape shape, int num_ranks) {
  shape.num_heads /= num_ranks;
  shape.num_kv_heads = model::key_heads_of_rank(shape.num_kv_heads, num_ranks);
  return shape;
}

}  // namespace

HeadExchange::HeadExchange(const kernels::AttentionShape& whole, model::AxisPlace ranks)
    : whole_(whole), part_(part_of(whole, ranks.size)), ranks_(ranks) {}

Tensor HeadExchange::block(const Tensor& blocks, int rank) const {
  const std::int64_t rows = blocks.rows / ranks_.size;
  return blocks.row_range(rank * rows, rows);
}

HeadExchange::Columns HeadExchange::columns_of(const Tensor& qkv, int rank) const {
  const std::int64_t first = rank * whole_.num_kv_heads / ranks_.size;  // of keys and values
  const std::int64_t heads = part_.num_kv_heads, values = whole_.values_of_head();
  return {qkv.columns(rank * part_.query_cols(), part_.query_cols()),
          qkv.columns(whole_.query_cols() + first * whole_.head_dim, heads * whole_.head_dim),
          qkv.columns(whole_.first_value() + first * values, heads * values)};
}

HeadExchange::Columns HeadExchange::columns_of_part(const Tensor& block) const {
  const std::int64_t keys = part_.num_kv_heads * part_.head_dim;
  return {block.columns(0, part_.query_cols()), block.columns(part_.query_cols(), keys),
          block.columns(part_.first_value(), part_.num_kv_heads * part_.values_of_head())};
}

void HeadExchange::split_qkv(const Tensor& qkv, const Tensor& blocks) const {
  for (int rank = 0; rank < ranks_.size; ++rank) {
    const Columns from = columns_of(qkv, rank), to = columns_of_part(block(blocks, rank));
    copy_tensor(from.query, to.query);
    copy_tensor(from.key, to.key);
    copy_tensor(from.value, to.value);
  }
}

void HeadExchange::join_qkv_gradients(const Tensor& blocks, const Tensor& qkv) const {
  kernels::set_zero(qkv);
  for (int rank = 0; rank < ranks_.size; ++rank) {
    const Columns to = columns_of(qkv, rank), from = columns_of_part(block(blocks, rank));
    copy_tensor(from.query, to.query);
    if (planted(Bug::kKeyCopiesNotSummed)) kernels::set_zero(to.key);
    kernels::add(from.key, to.key);
    kernels::add(from.value, to.value);
  }
}

void HeadExchange::split_output(const Tensor& output, const Tensor& blocks) const {
  for (int rank = 0; rank < ranks_.size; ++rank)
    copy_tensor(output_of(output, rank), block(blocks, rank));
}

void HeadExchange::join_output(const Tensor& blocks, const Tensor& output) const {
  for (int rank = 0; rank < ranks_.size; ++rank)
    copy_tensor(block(blocks, rank), output_of(output, rank));
}

Exchange HeadExchange::all_to_all(Tensor sent, Tensor received) const {
  PT_CHECK(sent.stride == sent.cols && received.stride == received.cols);
  const auto start = [this, sent, received](comm::Communicator& ranks) {
    const auto piece = [this](const Tensor& blocks, int rank) {
      const Tensor of_rank = block(blocks, rank);
      const auto size = static_cast<std::size_t>(of_rank.num_elements() * size_of(of_rank.dtype));
      return comm::Piece{rank, {of_rank.as<std::byte>(), size}};
    };
    std::vector<comm::Piece> sends, receives;
    for (int rank = 0; rank < ranks_.size; ++rank) {
      sends.push_back(piece(sent, rank));
      receives.push_back(piece(received, rank));
    }
    return ranks.all_to_all_v(sends, receives);
  };
  return {ExchangeKind::kAllToAll, ExchangeAxis::kUlysses, start,
          sent.num_elements() * size_of(sent.dtype)};
}

}  // namespace ptrain::layers
