// The gradient of attention of one document; probabilities are made again from the scores. First
// the gradients of keys and values, into scratch: a block works on some keys of one key head and
// goes over the queries that see them, of all heads that share it. Then those of queries, in place:
// a block works on some queries of one head and goes over the keys that they see. Nothing is added
// by two blocks, so that the bits are the same every time.
#include "engine/base/engine_error.h"
#include "engine/kernels/convert.h"
#include "engine/kernels/cuda/attention_tile.h"

namespace ptrain::kernels {
namespace {

template <class T>
constexpr int kRows = 64 / sizeof(T);  // queries and keys of a pair of tiles

template <class T>
std::int64_t shared_bytes_of(int dim) {
  using Room = Carver<T>;
  const int rows = kRows<T>;
  return static_cast<std::int64_t>(sizeof(T)) *
         (6 * Room::elements(rows, dim) + 2 * Room::elements(rows, rows) +
          2 * Room::elements(1, rows));
}

// A tile of queries, a tile of keys, and what comes of the pair.
template <class T>
struct Pair {
  PT_DEVICE Pair(const Block& block, int dim) {
    const int rows = kRows<T>;
    Carver<T> room{block.shared<T>()};
    for (Tile<T>* tile : {&query, &doutput, &key, &value, &first_sums, &second_sums})
      *tile = room.tile(rows, dim);
    probabilities = room.tile(rows, rows);
    dscores = room.tile(rows, rows);
    log_sum_exp = room.row(rows);
    mean = room.row(rows);
  }
  Tile<T> query, doutput, key, value;
  Tile<T> first_sums, second_sums;  // of the block's gradients
  Tile<T> probabilities, dscores;   // [queries, keys]
  T *log_sum_exp, *mean;            // mean: of the probabilities' gradients, by the probabilities
};

template <class T>
struct Inputs {
  Document<T> document;
  View<T> output, log_sum_exp, doutput;

  PT_DEVICE void load_queries(const Block& block, const Pair<T>& pair, const Span& queries,
                              std::int64_t head) const {
    const std::int64_t first_col = head * document.dim;
    each_of(block, queries.rows, document.dim, [&](int r, int j) {
      pair.query(r, j) = document.query(queries.first + r, head, j);
      pair.doutput(r, j) = doutput(queries.first + r, first_col + j);
    });
    block.each(queries.rows, [&](std::int64_t r) {
      T mean{0};
      for (int j = 0; j < document.dim; ++j)
        mean += pair.doutput(static_cast<int>(r), j) * output(queries.first + r, first_col + j);
      pair.mean[r] = mean;
      pair.log_sum_exp[r] = log_sum_exp(queries.first + r, head);
    });
  }

  PT_DEVICE void load_keys(const Block& block, const Pair<T>& pair, const Span& keys,
                           std::int64_t kv_head) const {
    each_of(block, keys.rows, document.dim, [&](int c, int j) {
      pair.key(c, j) = document.key(keys.first + c, kv_head, j);
      pair.value(c, j) = document.value(keys.first + c, kv_head, j);
    });
  }

  PT_DEVICE void make_scores(const Block& block, const Pair<T>& pair, const Span& queries,
                             const Span& keys) const {
    each_of(block, queries.rows, keys.rows, [&](int r, int c) {
      const T score = document.score(product(pair.query, r, pair.key, c));
      const bool seen = document.sees(queries.first + r, keys.first + c);
      const T probability = seen ? std::exp(score - pair.log_sum_exp[r]) : T{0};
      const T dprobability = product(pair.doutput, r, pair.value, c);
      pair.probabilities(r, c) = probability;
      pair.dscores(r, c) = probability * (dprobability - pair.mean[r]) * document.slope(score);
    });
  }
};

template <class T>
struct KeysBackward {
  Inputs<T> in;
  View<T> dkeys, dvalues;  // [tokens, kv heads * head_dim]
  std::int64_t num_kv_heads;

  PT_DEVICE void operator()(const Block& block) const {
    const Document<T>& document = in.document;
    const std::int64_t kv_head = block.index() % num_kv_heads;
    const Span keys = span_at(block.index() / num_kv_heads * kRows<T>, document.size, kRows<T>);
    const Pair<T> pair(block, document.dim);
    in.load_keys(block, pair, keys, kv_head);
    each_of(block, keys.rows, document.dim,
            [&](int c, int j) { pair.first_sums(c, j) = pair.second_sums(c, j) = 0; });
    for (std::int64_t head = kv_head * document.group; head < (kv_head + 1) * document.group;
         ++head)
      for (std::int64_t query = keys.first; query < end_of_queries(keys); query += kRows<T>)
        add_queries(block, pair, span_at(query, end_of_queries(keys), kRows<T>), keys, head);
    each_of(block, keys.rows, document.dim, [&](int c, int j) {
      dkeys(keys.first + c, kv_head * document.dim + j) = pair.first_sums(c, j);
      dvalues(keys.first + c, kv_head * document.dim + j) = pair.second_sums(c, j);
    });
  }

 private:
  // Behind the last query that sees any of the keys.
  PT_DEVICE std::int64_t end_of_queries(const Span& keys) const {
    const Document<T>& document = in.document;
    const std::int64_t end = keys.first + keys.rows - 1 + document.window;
    return document.window > 0 && end < document.size ? end : document.size;
  }

  PT_DEVICE void add_queries(const Block& block, const Pair<T>& pair, const Span& queries,
                             const Span& keys, std::int64_t head) const {
    in.load_queries(block, pair, queries, head);
    in.make_scores(block, pair, queries, keys);
    each_of(block, keys.rows, in.document.dim, [&](int c, int j) {
      for (int r = 0; r < queries.rows; ++r) {
        pair.first_sums(c, j) += pair.dscores(r, c) * pair.query(r, j);
        pair.second_sums(c, j) += pair.probabilities(r, c) * pair.doutput(r, j);
      }
    });
  }
};

template <class T>
struct QueriesBackward {
  Inputs<T> in;
  std::int64_t num_heads;

  PT_DEVICE void operator()(const Block& block) const {
    const Document<T>& document = in.document;
    const std::int64_t head = block.index() % num_heads;
    const Span queries = span_at(block.index() / num_heads * kRows<T>, document.size, kRows<T>);
    const Pair<T> pair(block, document.dim);
    in.load_queries(block, pair, queries, head);
    each_of(block, queries.rows, document.dim, [&](int r, int j) { pair.first_sums(r, j) = 0; });
    const std::int64_t end = queries.first + queries.rows;
    for (std::int64_t key = first_key(queries.first, document.window); key < end; key += kRows<T>)
      add_keys(block, pair, queries, span_at(key, end, kRows<T>), head / document.group);
    each_of(block, queries.rows, document.dim, [&](int r, int j) {
      document.query(queries.first + r, head, j) = pair.first_sums(r, j);
    });
  }

 private:
  PT_DEVICE void add_keys(const Block& block, const Pair<T>& pair, const Span& queries,
                          const Span& keys, std::int64_t kv_head) const {
    in.load_keys(block, pair, keys, kv_head);
    in.make_scores(block, pair, queries, keys);
    each_of(block, queries.rows, in.document.dim, [&](int r, int j) {
      for (int c = 0; c < keys.rows; ++c)
        pair.first_sums(r, j) += pair.dscores(r, c) * pair.key(c, j);
    });
  }
};

template <class T>
void backward(const AttentionShape& shape, const AttentionGradient& in, const Tensor& qkv,
              const Tensor& dkeys, const Tensor& dvalues) {
  const Inputs<T> inputs{Document<T>(shape, qkv), View<T>(in.output), View<T>(in.log_sum_exp),
                         View<T>(in.doutput)};
  const std::int64_t tiles = (qkv.rows + kRows<T> - 1) / kRows<T>;
  const std::int64_t bytes = shared_bytes_of<T>(static_cast<int>(shape.head_dim));
  launch(tiles * shape.num_kv_heads, bytes,
         KeysBackward<T>{inputs, View<T>(dkeys), View<T>(dvalues), shape.num_kv_heads});
  launch(tiles * shape.num_heads, bytes, QueriesBackward<T>{inputs, shape.num_heads});
}

}  // namespace

void attention_backward(const AttentionShape& shape, const AttentionGradient& in, const Tensor& qkv,
                        Arena& arena) {
  check_attention(shape, qkv);
  PT_CHECK(in.output.cols == shape.query_cols() && in.log_sum_exp.cols == shape.num_heads);
  const std::int64_t cols = shape.num_kv_heads * shape.head_dim;
  const Buffer scratch(arena, program::MemoryClass::kTemporary,
                       qkv.rows * 2 * cols * size_of(qkv.dtype));
  const Tensor both = contiguous(scratch.data(), qkv.dtype, qkv.rows, 2 * cols);
  dispatch(qkv.dtype, [&]<class T>(T) {
    backward<T>(shape, in, qkv, both.columns(0, cols), both.columns(cols, cols));
  });
  convert(both, qkv.columns(shape.query_cols(), 2 * cols));
}

}  // namespace ptrain::kernels
