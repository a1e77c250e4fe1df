#include "engine/kernels/embedding.h"

#include "engine/kernels/rows.h"
#include "engine/layers/layers.h"
#include "engine/layers/workspace.h"

namespace ptrain::layers {
namespace {

// Parameters: the table of tokens [V, H], and that of positions where the model has one. Keeps
// nothing: its backward needs tokens and positions only.
class Embedding final : public Layer {
 public:
  explicit Embedding(const model::Decoder& decoder)
      : scale_(decoder.embedding_scale), has_positions_(decoder.num_positions > 0) {}

  void forward(const Context& context, const Tensor&, const Tensor& y) const override {
    kernels::gather_rows(context.parameters[0], context.batch.tokens, y);
    if (scale_ != 1) kernels::scale(scale_, y);
    if (has_positions_) kernels::add_rows(context.parameters[1], context.batch.positions, y);
  }

  void recompute(const Context&) const override {}
  void remake(const Context&) const override {}

  void backward_input(const Context& context, std::span<const GradientTarget> gradients,
                      const Tensor& dy, std::vector<WeightProduct>&, std::vector<Buffer>&,
                      LossSums&) const override {
    if (has_positions_) {
      begin_sum(gradients[1]);
      kernels::scatter_add_rows(dy, context.batch.positions, gradients[1].tensor);
    }
    if (scale_ != 1) kernels::scale(scale_, dy);
    begin_sum(gradients[0]);
    kernels::scatter_add_rows(dy, context.batch.tokens, gradients[0].tensor);
  }

 private:
  double scale_;
  bool has_positions_;
};

}  // namespace

std::unique_ptr<Layer> make_embedding(const model::Architecture& architecture) {
  return std::make_unique<Embedding>(architecture.decoder);
}

}  // namespace ptrain::layers
