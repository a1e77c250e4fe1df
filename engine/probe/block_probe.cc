#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/model/architecture.h"
#include "engine/base/arena.h"
#include "engine/base/engine_error.h"
#include "engine/kernels/attention.h"
#include "engine/layers/layer.h"
#include "engine/layers/linear.h"
#include "engine/probe/kernels.h"
#include "engine/probe/timing.h"

namespace ptrain::probe {

namespace {

constexpr std::int64_t kTokens = 512, kDocument = 128;

recipe::Model reference_model() {
  recipe::Model model;
  model.hidden_size = 256;
  model.intermediate_size = 768;
  model.num_hidden_layers = 1;
  model.num_attention_heads = 8;
  model.num_key_value_heads = 4;
  model.vocab_size = 320;
  return model;
}

model::Architecture reference_architecture() {
  auto architecture = model::make_architecture(reference_model(), DType::kFloat32);
  PT_CHECK(architecture.has_value());
  return *std::move(architecture);
}

// One block of a small llama, run as the executor runs it, and its products alone.
class Block {
 public:
  Block()
      : architecture_(reference_architecture()),
        layer_(std::move(layers::make_layers(architecture_)[1])),
        batch_(data::rows_of_one_document(kTokens / kDocument, kDocument)) {
    const auto& spec = architecture_.layers[1];
    for (const int index : spec.parameters) {
      const auto& shape = architecture_.parameters[static_cast<std::size_t>(index)].shape;
      const std::int64_t rows = shape.size() > 1 ? shape.front() : 1;
      parameters_.push_back(make(rows, shape.back(), 0.02F));
      gradients_.push_back({make(rows, shape.back(), 0), false});
    }
    for (const auto& tensor : spec.stash)
      stash_.push_back(make(kTokens, tensor.elements_per_token, 0));
    x_ = make(kTokens, architecture_.config.hidden_size, 0.1F);
    y_ = make(kTokens, architecture_.config.hidden_size, 0);
  }

  void forward() { layers::run_alone(layer_->forward(context(), x_, y_)); }
  void backward() {
    std::vector<layers::WeightProduct> products;
    std::vector<Buffer> scratch;
    layers::LossSums sums;
    layers::run_alone(layer_->backward_input(context(), gradients_, y_, products, scratch, sums));
    layers::backward_weight(products);
  }
  // The matrix products of forward; those of backward.
  void forward_products() {
    each_linear([](const Linear& l) { layers::linear(l.x, l.weights, l.y); });
  }
  void backward_products() {
    each_linear([](const Linear& l) {
      std::vector<layers::WeightProduct> products;
      layers::linear_input_gradient(l.y, l.weights, l.x);
      layers::queue_weight_gradient(l.x, l.y, l.gradients, products);
      layers::backward_weight(products);
    });
  }
  void attention() {
    for (const auto& span : batch_.documents)
      kernels::attention(shape(), rows(stash_[3], span), rows(stash_[4], span),
                         rows(stash_[5], span), arena_);
  }
  void attention_backward() {
    for (const auto& span : batch_.documents)
      kernels::attention_backward(
          shape(), {rows(stash_[4], span), rows(stash_[5], span), rows(stash_[4], span)},
          rows(stash_[3], span), arena_);
  }

  double kept_bytes() const {
    double bytes = 0;
    for (const Tensor& tensor : stash_) bytes += static_cast<double>(tensor.num_elements() * 4);
    return bytes;
  }

 private:
  struct Linear {
    Tensor x;
    std::span<const Tensor> weights;
    std::span<const layers::GradientTarget> gradients;
    Tensor y;
  };

  // Query, key and value; output; gate and up; down: by the order of core/model/build.cc.
  template <class F>
  void each_linear(F f) {
    const std::span weights(parameters_);
    const std::span gradients(gradients_);
    const auto linear = [&](std::size_t first, std::size_t count, const Tensor& x,
                            const Tensor& y) {
      f(Linear{x, weights.subspan(first, count), gradients.subspan(first, count), y});
    };
    linear(1, 3, stash_[1], stash_[3]);
    linear(4, 1, stash_[4], y_);
    linear(6, 2, stash_[7], stash_[9]);
    linear(8, 1, stash_[10], y_);
  }

  layers::Context context() { return {batch_, arena_, parameters_, stash_}; }
  kernels::AttentionShape shape() const {
    const auto& config = architecture_.config;
    return {config.num_attention_heads, config.num_key_value_heads, config.head_dim};
  }
  static Tensor rows(const Tensor& tensor, const data::DocumentSpan& span) {
    return tensor.row_range(span.begin, span.end - span.begin);
  }
  Tensor make(std::int64_t rows, std::int64_t cols, float value) {
    memory_.emplace_back(static_cast<std::size_t>(rows * cols), value);
    return contiguous(memory_.back().data(), DType::kFloat32, rows, cols);
  }

  model::Architecture architecture_;
  std::unique_ptr<layers::Layer> layer_;
  data::MicroBatch batch_;
  Arena arena_;
  std::vector<std::vector<float>> memory_;
  std::vector<Tensor> parameters_, stash_;
  std::vector<layers::GradientTarget> gradients_;
  Tensor x_, y_;
};

}  // namespace

nlohmann::json kept_bytes_per_s(comm::Communicator& world) {
  constexpr double kLeastShare = 0.02;  // of the whole: what noise leaves is not below zero
  Block block;
  const auto rate = [&](double whole_s, double known_s) {
    return block.kept_bytes() / std::max(whole_s - known_s, kLeastShare * whole_s);
  };
  // A backward leaves gradients where it read; the forward before it makes the values again.
  const auto after_forward = [&](auto work) {
    return best_seconds(world, [&] {
      block.forward();
      work();
    });
  };
  const double forward = best_seconds(world, [&] { block.forward(); });
  const double products = best_seconds(world, [&] { block.forward_products(); });
  const double attention = best_seconds(world, [&] { block.attention(); });
  const double backward = after_forward([&] { block.backward(); }) - forward;
  const double backward_products = after_forward([&] { block.backward_products(); }) - forward;
  const double backward_attention = after_forward([&] { block.attention_backward(); }) - forward;
  const double forward_rate = rate(forward, products + attention);
  // Backward reads what forward wrote and writes as much: what a small difference of large times
  // leaves is no better than that.
  const double backward_rate = rate(backward, backward_products + backward_attention);
  return {{"forward", forward_rate}, {"backward", std::min(forward_rate, backward_rate)}};
}

}  // namespace ptrain::probe
