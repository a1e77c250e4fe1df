#include "engine/kernels/embedding.h"

#include "engine/layers/layers.h"
#include "engine/layers/workspace.h"

namespace ptrain::layers {
namespace {

// Parameters: the table [V, H]. Keeps nothing: its backward needs the tokens only.
class Embedding final : public Layer {
 public:
  void forward(const Context& context, const Tensor&, const Tensor& y) const override {
    kernels::gather_rows(context.parameters[0], context.batch.tokens, y);
  }

  void recompute(const Context&) const override {}

  void backward_input(const Context& context, std::span<const GradientTarget> gradients,
                      const Tensor& dy, std::vector<WeightProduct>&, std::vector<Buffer>&,
                      LossSums&) const override {
    begin_sum(gradients[0]);
    kernels::scatter_add_rows(dy, context.batch.tokens, gradients[0].tensor);
  }
};

}  // namespace

std::unique_ptr<Layer> make_embedding(const model::Architecture&) {
  return std::make_unique<Embedding>();
}

}  // namespace ptrain::layers
