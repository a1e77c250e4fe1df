// Layers that sleep in place of computing, so that a machine with fewer cores than ranks shows how
// well the executor keeps to its program. It defines what engine/layers offers to the executor: as
// an object of the program it comes before the library of the real ones, which then stay out.
#include "tests/bench/sleeping_layers.h"

#include <cstring>
#include <memory>
#include <thread>

#include "engine/base/engine_error.h"
#include "engine/layers/layer.h"

namespace ptrain::layers {
namespace {

void clear(const Tensor& tensor) {
  for (std::int64_t row = 0; row < tensor.rows; ++row)
    std::memset(tensor.row_range(row, 1).data, 0,
                static_cast<std::size_t>(tensor.cols * size_of(tensor.dtype)));
}

class SleepingLayer final : public Layer {
 public:
  explicit SleepingLayer(model::LayerKind kind) : kind_(kind) {}

  Task forward(const Context&, Tensor, Tensor y) const override {
    sleep();
    if (y.data != nullptr) clear(y);
    co_return;
  }
  Task recompute(const Context&) const override {
    sleep();
    co_return;
  }
  Task remake(const Context&) const override { co_return; }

  // One product stands for all of a block.
  Task backward_input(const Context& context, std::span<const GradientTarget> gradients, Tensor dy,
                      std::vector<WeightProduct>& products, std::vector<Buffer>&,
                      LossSums& sums) const override {
    sleep();
    for (const GradientTarget& gradient : gradients)
      if (!gradient.accumulate) clear(gradient.tensor);
    if (dy.data != nullptr) clear(dy);
    if (kind_ == model::LayerKind::kHead) sums.num_targets += context.batch.num_targets();
    if (kind_ == model::LayerKind::kBlock) products.push_back({dy, dy, gradients.front()});
    co_return;
  }

 private:
  void sleep() const {
    if (kind_ == model::LayerKind::kBlock) std::this_thread::sleep_for(bench::kPiece);
  }
  model::LayerKind kind_;
};

}  // namespace

void backward_weight(std::span<const WeightProduct> products) {
  for (std::size_t i = 0; i < products.size(); ++i) std::this_thread::sleep_for(bench::kPiece);
}

Task Layer::loss(const Context&, Tensor, LossSums&) const {
  throw_bug(__FILE__, __LINE__, "layers that sleep have no loss");
}

Task Layer::logits(const Context&, Tensor, std::int64_t, Tensor) const {
  throw_bug(__FILE__, __LINE__, "layers that sleep have no logits");
}

std::int64_t vocabulary_of(const model::Architecture& architecture) {
  return architecture.config.vocab_size * architecture.tensor.size;
}

std::vector<std::unique_ptr<Layer>> make_layers(const model::Architecture& architecture) {
  std::vector<std::unique_ptr<Layer>> layers;
  for (const model::LayerSpec& spec : architecture.layers)
    layers.push_back(spec.held ? std::make_unique<SleepingLayer>(spec.kind) : nullptr);
  return layers;
}

}  // namespace ptrain::layers
