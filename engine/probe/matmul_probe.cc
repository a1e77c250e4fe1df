#include <nlohmann/json.hpp>
#include <vector>

#include "engine/base/tensor.h"
#include "engine/kernels/matmul.h"
#include "engine/probe/kernels.h"
#include "engine/probe/timing.h"

namespace ptrain::probe {

namespace {

constexpr std::int64_t kTokens = 512;
constexpr std::int64_t kWidths[] = {64, 128, 256, 512, 1024};
constexpr std::int64_t kBestWidth = 512;

// The products of one linear with weights [width, width], as layers make them.
template <class T>
class Linear {
 public:
  Linear(std::int64_t width, DType dtype)
      : width_(width),
        dtype_(dtype),
        x_(static_cast<std::size_t>(kTokens * width), T(0.5)),
        y_(x_.size(), T(0.25)),
        dx_(x_.size()),
        weight_(static_cast<std::size_t>(width * width), T(0.25)),
        gradient_(weight_.size()) {}

  void forward() { kernels::matmul(rows(x_), matrix(weight_), rows(y_), {.transpose_b = true}); }
  void backward() {
    kernels::matmul(rows(y_), matrix(weight_), rows(dx_));
    kernels::matmul(rows(y_), rows(x_), matrix(gradient_), {.transpose_a = true});
  }
  double forward_flops() const { return 2.0 * kTokens * static_cast<double>(width_ * width_); }

 private:
  Tensor rows(std::vector<T>& data) const {
    return contiguous(data.data(), dtype_, kTokens, width_);
  }
  Tensor matrix(std::vector<T>& data) const {
    return contiguous(data.data(), dtype_, width_, width_);
  }
  std::int64_t width_;
  DType dtype_;
  std::vector<T> x_, y_, dx_, weight_, gradient_;
};

template <class T>
double best_rate(comm::Communicator& world, DType dtype) {
  Linear<T> linear(kBestWidth, dtype);
  return linear.forward_flops() / best_seconds(world, [&] { linear.forward(); });
}

}  // namespace

nlohmann::json matmul_rates(comm::Communicator& world) {
  return {{"float32", best_rate<float>(world, DType::kFloat32)},
          {"float64", best_rate<double>(world, DType::kFloat64)}};
}

nlohmann::json matmul_shares(comm::Communicator& world, double best_flops_per_s) {
  nlohmann::json shares = nlohmann::json::array();
  for (const std::int64_t width : kWidths) {
    Linear<float> linear(width, DType::kFloat32);
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
