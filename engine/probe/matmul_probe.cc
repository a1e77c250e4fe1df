#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/base/arena.h"
#include "engine/kernels/matmul.h"
#include "engine/probe/kernels.h"
#include "engine/probe/timing.h"

namespace ptrain::probe {

namespace {

constexpr std::int64_t kTokens = 512;
constexpr std::int64_t kWidths[] = {64, 128, 256, 512, 1024};
constexpr std::int64_t kBestWidth = 512;

// The products of one linear with weights [width, width], as layers make them.
class Linear {
 public:
  Linear(std::int64_t width, DType dtype)
      : width_(width),
        x_(rows(dtype)),
        dy_(rows(dtype)),
        y_(rows(wide_of(dtype))),
        dx_(rows(wide_of(dtype))),
        weight_(matrix(dtype)),
        gradient_(matrix(wide_of(dtype))) {}

  void forward() { kernels::matmul(x_, weight_, y_, {.transpose_b = true}); }
  void backward() {
    kernels::matmul(dy_, weight_, dx_);
    kernels::matmul(dy_, x_, gradient_, {.transpose_a = true});
  }
  double forward_flops() const { return 2.0 * kTokens * static_cast<double>(width_ * width_); }

 private:
  Tensor rows(DType dtype) { return filled(dtype, kTokens); }
  Tensor matrix(DType dtype) { return filled(dtype, width_); }
  Tensor filled(DType dtype, std::int64_t rows) {
    const std::int64_t bytes = rows * width_ * size_of(dtype);
    buffers_.emplace_back(arena_, program::MemoryClass::kTemporary, bytes);
    const Tensor tensor = contiguous(buffers_.back().data(), dtype, rows, width_);
    dispatch_compute(dtype, [&]<class T, class N>(T, N) {
      std::fill_n(tensor.as<N>(), tensor.num_elements(), N(T(0.25)));
    });
    return tensor;
  }

  Arena arena_;
  std::vector<Buffer> buffers_;
  std::int64_t width_;
  Tensor x_, dy_, y_, dx_, weight_, gradient_;
};

double best_rate(comm::Communicator& world, DType dtype) {
  Linear linear(kBestWidth, dtype);
  return linear.forward_flops() / best_seconds(world, [&] { linear.forward(); });
}

}  // namespace

nlohmann::json matmul_rates(comm::Communicator& world) {
  nlohmann::json rates;
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBFloat16})
    rates[std::string(name_of(dtype))] = best_rate(world, dtype);
  return rates;
}

nlohmann::json matmul_shares(comm::Communicator& world, DType dtype, double best_flops_per_s) {
  nlohmann::json shares = nlohmann::json::array();
  for (const std::int64_t width : kWidths) {
    Linear linear(width, dtype);
    const double at_best_s = linear.forward_flops() / best_flops_per_s;
    const double forward = best_seconds(world, [&] { linear.forward(); });
    const double backward = best_seconds(world, [&] { linear.backward(); });
    shares.push_back({{"width", width},
                      {"forward", at_best_s / forward},
                      {"backward", 2 * at_best_s / backward}});
  }
  return shares;
}

}  // namespace ptrain::probe
