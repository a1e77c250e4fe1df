// Attention of one document: a block works on some queries of one head and goes over the keys that
// they see, a tile at a time, with running largest scores and sums, so that no score leaves it.
#include "engine/base/engine_error.h"
#include "engine/kernels/attention.h"
#include "engine/kernels/cuda/attention_tile.h"

namespace ptrain::kernels {
namespace {

template <class T>
constexpr int kRows = 128 / sizeof(T);  // queries of a block, and keys of a tile

template <class T>
struct Forward {
  Document<T> document;
  View<T> output, log_sum_exp;
  std::int64_t num_heads;

  static std::int64_t shared_bytes(int dim) {
    using Room = Carver<T>;
    const int rows = kRows<T>;
    return static_cast<std::int64_t>(sizeof(T)) *
           (3 * Room::elements(rows, dim) + Room::elements(rows, rows) +
            3 * Room::elements(1, rows));
  }

  // Of the block's queries.
  struct State {
    Tile<T> query, key_or_value, sums, scores;
    T *largest, *total, *correction;
  };

  PT_DEVICE void operator()(const Block& block) const {
    const std::int64_t head = block.index() % num_heads;
    const Span queries = span_at(block.index() / num_heads * kRows<T>, document.size, kRows<T>);
    const State state = begin(block, queries, head);
    const std::int64_t end = queries.first + queries.rows;
    for (std::int64_t key = first_key(queries.first, document.window); key < end; key += kRows<T>)
      add_keys(block, state, queries, span_at(key, end, kRows<T>), head / document.group);
    each_of(block, queries.rows, document.dim, [&](int r, int j) {
      output(queries.first + r, head * document.dim + j) = state.sums(r, j) / state.total[r];
    });
    block.each(queries.rows, [&](std::int64_t r) {
      log_sum_exp(queries.first + r, head) = state.largest[r] + std::log(state.total[r]);
    });
  }

 private:
  PT_DEVICE State begin(const Block& block, const Span& queries, std::int64_t head) const {
    const int rows = kRows<T>, dim = document.dim;
    Carver<T> room{block.shared<T>()};
    const State state{room.tile(rows, dim),  room.tile(rows, dim), room.tile(rows, dim),
                      room.tile(rows, rows), room.row(rows),       room.row(rows),
                      room.row(rows)};
    each_of(block, queries.rows, dim, [&](int r, int j) {
      state.query(r, j) = document.query(queries.first + r, head, j);
      state.sums(r, j) = 0;
    });
    block.each(queries.rows, [&](std::int64_t r) {
      state.largest[r] = -INFINITY;
      state.total[r] = 0;
    });
    return state;
  }

  PT_DEVICE void add_keys(const Block& block, const State& state, const Span& queries,
                          const Span& keys, std::int64_t kv_head) const {
    each_of(block, keys.rows, document.dim, [&](int c, int j) {
      state.key_or_value(c, j) = document.key(keys.first + c, kv_head, j);
    });
    each_of(block, queries.rows, keys.rows, [&](int r, int c) {
      state.scores(r, c) = document.sees(queries.first + r, keys.first + c)
                               ? document.score(product(state.query, r, state.key_or_value, c))
                               : -INFINITY;
    });
    each_of(block, keys.rows, document.dim, [&](int c, int j) {
      state.key_or_value(c, j) = document.value(keys.first + c, kv_head, j);
    });
    block.each(queries.rows,
               [&](std::int64_t r) { soften(state, static_cast<int>(r), keys.rows); });
    each_of(block, queries.rows, document.dim, [&](int r, int j) {
      T sum = state.sums(r, j) * state.correction[r];
      for (int c = 0; c < keys.rows; ++c) sum += state.scores(r, c) * state.key_or_value(c, j);
      state.sums(r, j) = sum;
    });
  }

  // Scores of one query -> e^(score - largest so far).
  PT_DEVICE void soften(const State& state, int r, int num_keys) const {
    T largest = state.largest[r];
    for (int c = 0; c < num_keys; ++c)
      if (state.scores(r, c) > largest) largest = state.scores(r, c);
    const bool sees_none = largest == -INFINITY;
    const T correction = sees_none ? T{1} : std::exp(state.largest[r] - largest);
    T total = state.total[r] * correction;
    for (int c = 0; c < num_keys; ++c) {
      state.scores(r, c) = sees_none ? T{0} : std::exp(state.scores(r, c) - largest);
      total += state.scores(r, c);
    }
    state.largest[r] = largest;
    state.total[r] = total;
    state.correction[r] = correction;
  }
};

}  // namespace

void check_attention(const AttentionShape& shape, const Tensor& qkv) {
  constexpr std::int64_t kMostDim = 256;  // of what a block's memory holds
  PT_CHECK(qkv.cols == shape.qkv_cols() && shape.num_heads % shape.num_kv_heads == 0);
  if (shape.values_of_head() != shape.head_dim)
    throw EngineError(ExitCode::kEnvironment,
                      "attention on a GPU has values as wide as keys in this version",
                      "train this model on a cluster without GPUs");
  if (shape.head_dim > kMostDim)
    throw EngineError(ExitCode::kEnvironment,
                      "attention on a GPU has heads of at most 256 elements",
                      "train this model on a cluster without GPUs");
}

void attention(const AttentionShape& shape, const Tensor& qkv, const Tensor& output,
               const Tensor& log_sum_exp, Arena&) {
  check_attention(shape, qkv);
  PT_CHECK(output.cols == shape.query_cols() && log_sum_exp.cols == shape.num_heads);
  dispatch(qkv.dtype, [&]<class T>(T) {
    const std::int64_t tiles = (qkv.rows + kRows<T> - 1) / kRows<T>;
    launch(tiles * shape.num_heads, Forward<T>::shared_bytes(static_cast<int>(shape.head_dim)),
           Forward<T>{Document<T>(shape, qkv), View<T>(output), View<T>(log_sum_exp),
                      shape.num_heads});
  });
}

}  // namespace ptrain::kernels
