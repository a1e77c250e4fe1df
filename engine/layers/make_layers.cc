#include "engine/base/engine_error.h"
#include "engine/layers/layers.h"

namespace ptrain::layers {

void Layer::loss(const Context&, const Tensor&, LossSums&) const {
  throw_bug(__FILE__, __LINE__, "only a head makes a loss");
}

void Layer::logits(const Context&, const Tensor&, const Tensor&) const {
  throw_bug(__FILE__, __LINE__, "only a head makes logits");
}

std::vector<std::unique_ptr<Layer>> make_layers(const model::Architecture& architecture) {
  const recipe::Model& config = architecture.config;
  const auto rotary = std::make_shared<const kernels::RotaryTable>(
      config.head_dim, config.rope_theta, architecture.dtype);
  std::vector<std::unique_ptr<Layer>> layers;
  for (const model::LayerSpec& spec : architecture.layers) {
    switch (spec.kind) {
      case model::LayerKind::kEmbedding:
        layers.push_back(make_embedding(architecture));
        break;
      case model::LayerKind::kBlock:
        layers.push_back(make_llama_block(architecture, rotary));
        break;
      case model::LayerKind::kHead:
        layers.push_back(make_head(architecture));
        break;
    }
  }
  return layers;
}

}  // namespace ptrain::layers
