#include "engine/layers/ring_attention.h"

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

Exchange RingAttention::shift(std::vector<Travelling> all) const {
  const int to = (ring_.rank + 1) % ring_.size;
  const int from = (ring_.rank + ring_.size - 1) % ring_.size;
  std::int64_t bytes = 0;
  for (const Travelling& one : all) bytes += std::ssize(bytes_of(one.here));
  const auto start = [=, all = std::move(all)](comm::Communicator& ranks) {
    std::vector<comm::Piece> sends, receives;
    for (const Travelling& one : all) {
      if (!one.gathered.empty()) kernels::add(one.gathered, one.here);
      sends.push_back({to, bytes_of(one.here)});
      receives.push_back({from, bytes_of(one.next)});
    }
    return ranks.exchange(sends, receives);
  };
  return {ExchangeKind::kShift, ExchangeAxis::kRing, start, bytes};
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
  std::vector<Buffer> buffers;
  Tensor here, next;
  if (ring_.size > 1) {
    here = copy_in(shape_.key_values(qkv), context.arena, buffers);
    next = take_scratch(context.arena, qkv.dtype, here.rows, here.cols, buffers);
    Exchange first = shift({{here, next}});
    co_await exchange(std::move(first));
  }
  each_own(context, [&](std::int64_t row, std::int64_t rows) {
    kernels::attention(shape_, qkv.row_range(row, rows), output.row_range(row, rows),
                       log_sum_exp.row_range(row, rows), context.arena);
  });
  if (ring_.size == 1) co_return;
  const Tensor query = shape_.queries(qkv);
  take_in(context, ring_.rank, query, shape_.key_values(qkv), output, log_sum_exp);
  for (int step = 1; step < ring_.size; ++step) {
    std::swap(here, next);
    Exchange coming = step + 1 < ring_.size ? shift({{here, next}}) : arrival();
    co_await exchange(std::move(coming));
    take_in(context, owner_after(step), query, here, output, log_sum_exp);
  }
}

void RingAttention::own_backward(const Context& context, const AttentionGradient& in,
                                 const Tensor& qkv) const {
  each_own(context, [&](std::int64_t row, std::int64_t rows) {
    kernels::attention_backward(
        shape_,
        {in.output.row_range(row, rows), in.log_sum_exp.row_range(row, rows),
         in.doutput.row_range(row, rows)},
        qkv.row_range(row, rows), context.arena);
  });
}

void RingAttention::backward_of(const Context& context, int owner, const AttentionGradient& in,
                                const Passing& from, const Passing& gradients) const {
  each_before(context, owner, [&](const Pair& pair) {
    kernels::attention_before_backward(
        shape_, pair.before(from.query, from.key_value),
        {pair.of_query(in.output), pair.of_query(in.log_sum_exp), pair.of_query(in.doutput)},
        pair.of_query(gradients.query), pair.of_key(gradients.key_value), context.arena);
  });
}

// Keys and values travel a step ahead of the attention with them, their gradients a step behind it:
// each rank adds its part to what came, and two steps after the last attention they are home.
Task RingAttention::backward(const Context& context, AttentionGradient in, Tensor qkv) const {
  std::vector<Buffer> buffers;
  const bool travels = ring_.size > 1;
  const auto room = [&] {
    return take_scratch(context.arena, qkv.dtype, qkv.rows, shape_.key_value_cols(), buffers);
  };
  Tensor here, next, query, gradient, sent, came;  // sent: the gradient of the step before
  if (travels) {
    here = copy_in(shape_.key_values(qkv), context.arena, buffers);
    next = room();
    query = copy_in(shape_.queries(qkv), context.arena, buffers);
    gradient = room();
    sent = room();
    came = room();
    Exchange first = shift({{here, next}});
    co_await exchange(std::move(first));
  }
  own_backward(context, in, qkv);
  if (!travels) co_return;
  copy_tensor(shape_.key_values(qkv), gradient);
  for (int step = 0; step < ring_.size; ++step) {
    backward_of(context, owner_after(step), in, {query, here}, {shape_.queries(qkv), gradient});
    if (step > 0 && planted(Bug::kRingGradientsLost)) kernels::set_zero(gradient);
    std::swap(here, next);
    std::swap(gradient, sent);
    std::vector<Travelling> all{{sent, came, step > 0 ? came : Tensor()}};
    if (step + 2 < ring_.size) all.push_back({here, next});
    Exchange coming = shift(std::move(all));
    co_await exchange(std::move(coming));
    kernels::set_zero(gradient);
  }
  co_await exchange(arrival());
  copy_tensor(came, shape_.key_values(qkv));
}

}  // namespace ptrain::layers
