#include "engine/layers/ring_attention.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/base/engine_error.h"
#include "engine/base/planted.h"
#include "engine/kernels/attention_before.h"
#include "engine/kernels/rows.h"
#include "engine/layers/workspace.h"

namespace ptrain::layers {
namespace {

using kernels::AttentionGradient;
using packing::ContextPiece;
using packing::ContextPieces;

const ContextPieces& pieces_of(const Context& context, int rank) {
  return context.batch.ring_pieces[static_cast<std::size_t>(rank)];
}

Tensor copy_in(const Tensor& tensor, Arena& arena, std::vector<Buffer>& buffers) {
  const Tensor copy = take_scratch(arena, tensor.dtype, tensor.rows, tensor.cols, buffers);
  copy_tensor(tensor, copy);
  return copy;
}

std::span<std::byte> bytes_of(const Tensor& tensor) {
  PT_CHECK(tensor.stride == tensor.cols);
  return {tensor.as<std::byte>(),
          static_cast<std::size_t>(tensor.num_elements() * size_of(tensor.dtype))};
}

}  // namespace

struct RingAttention::Pair {
  std::int64_t query, queries, key, keys;
  std::int64_t distance;  // from the first key to the first query
  Tensor of_query(const Tensor& tensor) const { return tensor.row_range(query, queries); }
  Tensor of_key(const Tensor& tensor) const { return tensor.row_range(key, keys); }
  kernels::Before before(const Tensor& query_rows, const Tensor& key_value) const {
    return {of_query(query_rows), of_key(key_value), distance};
  }
};

// Both lists ascend, and so do their documents.
template <class F>
void RingAttention::each_before(const Context& context, int other, const F& f) const {
  const ContextPieces& theirs = pieces_of(context, other);
  std::size_t first = 0;  // of the query's document, among theirs
  std::int64_t query = 0, first_key = 0;
  for (const ContextPiece& own : pieces_of(context, ring_.rank)) {
    for (; first < theirs.size() && theirs[first].document < own.document; ++first)
      first_key += theirs[first].length();
    std::int64_t key = first_key;
    for (std::size_t i = first; i < theirs.size() && theirs[i].document == own.document; ++i) {
      if (theirs[i].begin >= own.begin) break;
      f(Pair{query, own.length(), key, theirs[i].length(), own.begin - theirs[i].begin});
      key += theirs[i].length();
    }
    query += own.length();
  }
}

template <class F>
void RingAttention::each_own(const Context& context, const F& f) const {
  std::int64_t row = 0;
  for (const ContextPiece& piece : pieces_of(context, ring_.rank)) {
    f(row, piece.length());
    row += piece.length();
  }
}

Exchange RingAttention::shift(Tensor here, Tensor next) const {
  const int to = (ring_.rank + 1) % ring_.size;
  const int from = (ring_.rank + ring_.size - 1) % ring_.size;
  return {ExchangeKind::kShift, ExchangeAxis::kRing, [=](comm::Communicator& ranks) {
            const std::array send{comm::Piece{to, bytes_of(here)}};
            const std::array receive{comm::Piece{from, bytes_of(next)}};
            return ranks.exchange(send, receive);
          }};
}

void RingAttention::take_in(const Context& context, int owner, const Tensor& query,
                            const Tensor& key_value, const Tensor& output,
                            const Tensor& log_sum_exp) const {
  std::vector<Buffer> buffers;
  const Tensor sums =
      planted(Bug::kRingNotMerged) ? copy_in(log_sum_exp, context.arena, buffers) : log_sum_exp;
  each_before(context, owner, [&](const Pair& pair) {
    kernels::attention_before(shape_, pair.before(query, key_value), pair.of_query(output),
                              pair.of_query(sums), context.arena);
  });
}

Task RingAttention::forward(const Context& context, Tensor qkv, Tensor output,
                            Tensor log_sum_exp) const {
  each_own(context, [&](std::int64_t row, std::int64_t rows) {
    kernels::attention(shape_, qkv.row_range(row, rows), output.row_range(row, rows),
                       log_sum_exp.row_range(row, rows), context.arena);
  });
  if (ring_.size == 1) co_return;
  const Tensor query = queries(qkv);
  take_in(context, ring_.rank, query, key_values(qkv), output, log_sum_exp);
  std::vector<Buffer> buffers;
  Tensor here = copy_in(key_values(qkv), context.arena, buffers);
  Tensor next = take_scratch(context.arena, qkv.dtype, here.rows, here.cols, buffers);
  for (int step = 1; step < ring_.size; ++step) {
    co_await exchange(shift(here, next));
    std::swap(here, next);
    take_in(context, owner_after(step), query, here, output, log_sum_exp);
  }
}

// What travels: keys and values, and in the rows behind them their gradients, to which each rank
// adds. One step after the last they are home.
Task RingAttention::backward(const Context& context, AttentionGradient in, Tensor qkv) const {
  std::vector<Buffer> buffers;
  const std::int64_t tokens = qkv.rows;
  const bool travels = ring_.size > 1;
  Tensor here, next, query;
  if (travels) {
    here = take_scratch(context.arena, qkv.dtype, 2 * tokens, key_value_cols(), buffers);
    next = take_scratch(context.arena, qkv.dtype, 2 * tokens, key_value_cols(), buffers);
    query = copy_in(queries(qkv), context.arena, buffers);
    copy_tensor(key_values(qkv), here.row_range(0, tokens));
  }
  each_own(context, [&](std::int64_t row, std::int64_t count) {
    kernels::attention_backward(
        shape_,
        {in.output.row_range(row, count), in.log_sum_exp.row_range(row, count),
         in.doutput.row_range(row, count)},
        qkv.row_range(row, count), context.arena);
  });
  if (!travels) co_return;
  copy_tensor(key_values(qkv), here.row_range(tokens, tokens));
  for (int step = 0; step < ring_.size; ++step) {
    if (step > 0) {
      co_await exchange(shift(here, next));
      std::swap(here, next);
    }
    const Tensor key_value = here.row_range(0, tokens), gradient = here.row_range(tokens, tokens);
    each_before(context, owner_after(step), [&](const Pair& pair) {
      kernels::attention_before_backward(
          shape_, pair.before(query, key_value),
          {pair.of_query(in.output), pair.of_query(in.log_sum_exp), pair.of_query(in.doutput)},
          pair.of_query(queries(qkv)), pair.of_key(gradient), context.arena);
    });
    if (step > 0 && planted(Bug::kRingGradientsLost)) kernels::set_zero(gradient);
  }
  const Tensor home = next.row_range(tokens, tokens);
  co_await exchange(shift(here.row_range(tokens, tokens), home));
  copy_tensor(home, key_values(qkv));
}

}  // namespace ptrain::layers
