// The matrix products and the attention of one training step and nothing else, timed as bench_step
// times the whole step: what no engine on these kernels can go below. Every layer has memory of its
// own, as in a step. Run with OMP_NUM_THREADS=1. Arguments as of bench_step.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "core/base/divide.h"
#include "engine/base/device.h"
#include "engine/base/engine_error.h"
#include "engine/kernels/attention.h"
#include "engine/kernels/matmul.h"
#include "tests/bench/shape.h"

namespace ptrain {
namespace {

class Room {
 public:
  // Rows of results begin at multiples of 64 elements, as those of the engine's logits do.
  Tensor results(DType dtype, std::int64_t rows, std::int64_t cols) {
    return tensor(dtype, rows, round_up(cols, 64)).columns(0, cols);
  }
  Tensor tensor(DType dtype, std::int64_t rows, std::int64_t cols) {
    buffers_.emplace_back(device::allocate(rows * cols * size_of(dtype)), device::release);
    const Tensor tensor = contiguous(buffers_.back().get(), dtype, rows, cols);
    // Numbers whose products stay ordinary ones: others take longer.
    for (std::int64_t i = 0; i < rows * cols; ++i) {
      const float value = 0.01f * static_cast<float>(1 + i % 7);
      if (dtype == DType::kFloat32) tensor.as<float>()[i] = value;
      if (dtype == DType::kBFloat16) tensor.as<BFloat16>()[i] = value;
    }
    return tensor;
  }

 private:
  std::vector<std::unique_ptr<void, decltype(&device::release)>> buffers_;
};

// y = x w^T, dx = dy w, dw = dy^T x.
struct Linear {
  Linear(Room& room, DType compute, std::int64_t tokens, std::int64_t in, std::int64_t out)
      : x(room.tensor(compute, tokens, in)),
        w(room.tensor(compute, out, in)),
        y(room.results(DType::kFloat32, tokens, out)),
        dy(compute == DType::kFloat32 ? y : room.results(compute, tokens, out)),
        dx(room.tensor(DType::kFloat32, tokens, in)),
        dw(room.tensor(DType::kFloat32, out, in)) {}
  void forward() const { kernels::matmul(x, w, y, {.transpose_b = true}); }
  void backward() const {
    kernels::matmul(dy, w, dx);
    kernels::matmul(dy, x, dw, {.transpose_a = true});
  }
  double flops() const { return 2.0 * static_cast<double>(x.rows * x.cols * y.cols); }
  Tensor x, w, y, dy, dx, dw;
};

struct Block {
  Block(Room& room, const bench::Shape& shape, DType compute)
      : attention{.num_heads = shape.heads,
                  .num_kv_heads = shape.kv_heads,
                  .head_dim = shape.hidden / shape.heads,
                  .products = compute},
        qkv(room, compute, shape.rows * shape.sequence, shape.hidden, attention.qkv_cols()),
        output(room, compute, qkv.x.rows, attention.query_cols(), shape.hidden),
        gate_up(room, compute, qkv.x.rows, shape.hidden, 2 * shape.ffn),
        down(room, compute, qkv.x.rows, shape.ffn, shape.hidden),
        attended(room.tensor(DType::kFloat32, qkv.x.rows, attention.query_cols())),
        log_sum_exp(room.tensor(DType::kFloat32, qkv.x.rows, shape.heads)) {}
  kernels::AttentionShape attention;
  Linear qkv, output, gate_up, down;
  Tensor attended, log_sum_exp;
};

void forward(const Block& block, std::int64_t sequence, Arena& arena) {
  block.qkv.forward();
  for (std::int64_t row = 0; row < block.qkv.y.rows; row += sequence)
    kernels::attention(block.attention, block.qkv.y.row_range(row, sequence),
                       block.attended.row_range(row, sequence),
                       block.log_sum_exp.row_range(row, sequence), arena);
  for (const Linear* linear : {&block.output, &block.gate_up, &block.down}) linear->forward();
}

void backward(const Block& block, std::int64_t sequence, Arena& arena) {
  for (const Linear* linear : {&block.down, &block.gate_up, &block.output}) linear->backward();
  for (std::int64_t row = 0; row < block.qkv.y.rows; row += sequence)
    kernels::attention_backward(
        block.attention,
        {block.attended.row_range(row, sequence), block.log_sum_exp.row_range(row, sequence),
         block.output.dx.row_range(row, sequence)},
        block.qkv.y.row_range(row, sequence), arena);
  block.qkv.backward();
}

void run(const bench::Shape& shape, DType compute) {
  Room room;
  Arena arena;
  std::vector<Block> blocks;
  for (std::int64_t layer = 0; layer < shape.layers; ++layer)
    blocks.emplace_back(room, shape, compute);
  const std::int64_t tokens = shape.rows * shape.sequence,
                     chunk = std::min<std::int64_t>(256, tokens);
  const Linear head(room, compute, chunk, shape.hidden, shape.vocabulary);
  double flops = head.flops();
  for (const Block& block : blocks)
    for (const Linear* linear : {&block.qkv, &block.output, &block.gate_up, &block.down})
      flops += linear->flops() / static_cast<double>(tokens) * static_cast<double>(chunk);
  // The same products as the engine's architecture counts.
  double expected = 0;
  for (const auto& layer : architecture_of(shape).layers)
    for (const auto& segment : layer.segments) expected += segment.flops_per_token;
  PT_CHECK(std::abs(flops / static_cast<double>(chunk) / expected - 1) < 1e-9);
  std::vector<double> seconds;
  for (std::int64_t step = 1; step <= shape.steps + 2; ++step) {  // two to warm up
    const double begin = bench::cpu_seconds();
    for (const Block& block : blocks) forward(block, shape.sequence, arena);
    for (std::int64_t token = 0; token < tokens; token += chunk) head.forward(), head.backward();
    for (const Block& block : blocks) backward(block, shape.sequence, arena);
    if (step > 2) seconds.push_back(bench::cpu_seconds() - begin);
  }
  std::ranges::sort(seconds);
  fmt::print(R"({{"tok_cpu_s": {:.0f}, "step_cpu_ms": {:.1f}}})"
             "\n",
             static_cast<double>(tokens) / seconds[seconds.size() / 2],
             1e3 * seconds[seconds.size() / 2]);
}

}  // namespace
}  // namespace ptrain

int main(int argc, char** argv) { return ptrain::bench::run_on(argc, argv, ptrain::run); }
