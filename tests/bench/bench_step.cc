// One full training step (forward, backward, AdamW) on one thread, timed as tokens per CPU second.
// Run with OMP_NUM_THREADS=1. Arguments: bf16, or nothing for fp32; then layers hidden heads
// kv_heads ffn vocabulary rows sequence steps, tied (0 or 1). The same shape in stock PyTorch is
// the peer: 4 256 8 4 768 256 16 128.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <random>
#include <vector>

#include "engine/optim/adamw.h"
#include "tests/bench/shape.h"
#include "tests/support/layer_model.h"

namespace ptrain {
namespace {

void fill(test::LayerModel& model) {
  std::mt19937 generator(2);
  std::normal_distribution<float> normal(0.0f, 0.02f);
  for (std::size_t i = 0; i < model.num_parameters(); ++i) {
    const Tensor& tensor = model.parameter(i);
    for (std::int64_t e = 0; e < tensor.num_elements(); ++e)
      tensor.as<float>()[e] = tensor.rows == 1 ? 1.0f : normal(generator);
  }
}

Tensor flat(const Tensor& tensor) {
  return contiguous(tensor.data, tensor.dtype, 1, tensor.num_elements());
}

struct Moments {
  std::vector<std::vector<float>> first, second;
  explicit Moments(const test::LayerModel& model) {
    for (std::size_t i = 0; i < model.num_parameters(); ++i) {
      first.emplace_back(static_cast<std::size_t>(model.parameter(i).num_elements()));
      second.push_back(first.back());
    }
  }
};

void optimize(const test::LayerModel& model, Moments& moments, std::int64_t step, double scale) {
  for (std::size_t i = 0; i < model.num_parameters(); ++i) {
    const std::int64_t size = model.parameter(i).num_elements();
    optim::adamw({}, {.learning_rate = 1e-3, .step = step, .scale = scale},
                 flat(model.parameter(i)), flat(model.gradient(i)),
                 contiguous(moments.first[i].data(), DType::kFloat32, 1, size),
                 contiguous(moments.second[i].data(), DType::kFloat32, 1, size));
  }
}

// Most of this process's memory that was resident so far.
double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// Parameters, gradients and moments, all of four bytes.
double state_mib(const test::LayerModel& model) {
  double elements = 0;
  for (std::size_t i = 0; i < model.num_parameters(); ++i)
    elements += static_cast<double>(model.parameter(i).num_elements());
  return 16 * elements / (1 << 20);
}

void run(const bench::Shape& shape, DType compute_dtype) {
  const double idle = peak_mib();
  test::LayerModel model(architecture_of(shape, compute_dtype));
  fill(model);
  const data::MicroBatch batch = random_batch(shape, shape.rows, 1);
  Moments moments(model);
  const auto num_tokens = static_cast<double>(batch.num_tokens());
  std::vector<double> seconds;
  double loss = 0;
  for (std::int64_t step = 1; step <= shape.steps + 2; ++step) {  // two to warm up
    const double begin = bench::cpu_seconds();
    model.restart_gradients();
    loss = model.step(batch).loss / num_tokens;
    optimize(model, moments, step, 1 / num_tokens);
    if (step > 2) seconds.push_back(bench::cpu_seconds() - begin);
  }
  std::ranges::sort(seconds);
  const double median = seconds[seconds.size() / 2];
  fmt::print(R"({{"tok_cpu_s": {:.0f}, "best": {:.0f}, "step_cpu_ms": {:.1f}, "loss": {:.6f}, )"
             R"("rss_above_state_mib": {:.0f}, "state_mib": {:.0f}}})"
             "\n",
             num_tokens / median, num_tokens / seconds.front(), 1e3 * median, loss,
             peak_mib() - idle - state_mib(model), state_mib(model));
}

}  // namespace
}  // namespace ptrain

int main(int argc, char** argv) { return ptrain::bench::run_on(argc, argv, ptrain::run); }
