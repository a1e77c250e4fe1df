#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/program/block_sizes.h"
#include "engine/base/arena.h"
#include "engine/kernels/attention.h"
#include "engine/probe/kernels.h"
#include "engine/probe/timing.h"

namespace ptrain::probe {

namespace {

// Of the queries whose scores the kernel holds, every key up to the last is multiplied.
using program::kScoreRows;

constexpr std::int64_t kHeads = 4, kKvHeads = 2;
constexpr std::int64_t kShort = kScoreRows, kLong = 8 * kScoreRows;
constexpr std::int64_t kNarrow = 32, kWide = 128;

// One document of `tokens`, all its tensors.
class Document {
 public:
  Document(std::int64_t tokens, std::int64_t head_dim, DType compute_dtype)
      : tokens_(tokens),
        shape_{.num_heads = kHeads,
               .num_kv_heads = kKvHeads,
               .head_dim = head_dim,
               .products = compute_dtype},
        qkv_(size(shape_.qkv_cols()), 0.01F),
        output_(size(shape_.query_cols())),
        doutput_(output_.size(), 0.01F),
        log_sum_exp_(size(kHeads)) {}

  void forward() {
    kernels::attention(shape_, of(qkv_, shape_.qkv_cols()), of(output_, shape_.query_cols()),
                       of(log_sum_exp_, kHeads), arena_);
  }
  // The kernel makes qkv its gradient, which must not grow from round to round.
  void backward() {
    kernels::attention_backward(shape_,
                                {of(output_, shape_.query_cols()), of(log_sum_exp_, kHeads),
                                 of(doutput_, shape_.query_cols())},
                                of(qkv_, shape_.qkv_cols()), arena_);
    std::fill(qkv_.begin(), qkv_.end(), 0.01F);
  }

 private:
  std::size_t size(std::int64_t cols) const { return static_cast<std::size_t>(tokens_ * cols); }
  Tensor of(std::vector<float>& data, std::int64_t cols) const {
    return contiguous(data.data(), DType::kFloat32, tokens_, cols);
  }
  std::int64_t tokens_;
  kernels::AttentionShape shape_;
  Arena arena_;
  std::vector<float> qkv_, output_, doutput_, log_sum_exp_;
};

// Solves seconds = blocks x block_s + pairs x (pair_s + head_dim x pair_dim_s) from three of them;
// none of the parts is below zero.
nlohmann::json solve(double short_narrow, double long_narrow, double long_wide) {
  constexpr double kShortPairs = kShort * kShort;
  constexpr double kBlocks = kLong / kScoreRows;
  constexpr double kLongPairs = kScoreRows * kScoreRows * kBlocks * (kBlocks + 1) / 2;
  constexpr double kLeast_s = 1e-15;
  const double dim =
      std::max(kLeast_s, (long_wide - long_narrow) / (kLongPairs * (kWide - kNarrow)));
  const double rest_long = long_narrow - kLongPairs * dim * kNarrow;
  const double rest_short = short_narrow - kShortPairs * dim * kNarrow;
  const double pair =
      std::max(kLeast_s, (rest_long - kBlocks * rest_short) / (kLongPairs - kBlocks * kShortPairs));
  const double block = std::max(kLeast_s, rest_short - kShortPairs * pair);
  return {{"block_s", block}, {"pair_s", pair}, {"pair_dim_s", dim}};
}

template <class Pass>
nlohmann::json pass_seconds(comm::Communicator& world, DType compute_dtype, Pass pass) {
  const auto time = [&](std::int64_t tokens, std::int64_t head_dim) {
    Document document(tokens, head_dim, compute_dtype);
    document.forward();
    return best_seconds(world, [&] { pass(document); }) / kHeads;
  };
  return solve(time(kShort, kNarrow), time(kLong, kNarrow), time(kLong, kWide));
}

}  // namespace

nlohmann::json attention_seconds(comm::Communicator& world, DType compute_dtype) {
  return {{"block_rows", kScoreRows},
          {"forward", pass_seconds(world, compute_dtype, [](Document& d) { d.forward(); })},
          {"backward", pass_seconds(world, compute_dtype, [](Document& d) { d.backward(); })}};
}

}  // namespace ptrain::probe
