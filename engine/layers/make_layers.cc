#include "core/model/rotary.h"
#include "engine/base/engine_error.h"
#include "engine/layers/layers.h"

namespace ptrain::layers {

Task Layer::loss(const Context&, Tensor, LossSums&) const {
  throw_bug(__FILE__, __LINE__, "only a head makes a loss");
}

Task Layer::logits(const Context&, Tensor, std::int64_t, Tensor) const {
  throw_bug(__FILE__, __LINE__, "only a head makes logits");
}

namespace {

using Tables = std::vector<std::shared_ptr<const kernels::RotaryTable>>;

Tables rotary_tables(const model::Architecture& architecture) {
  Tables tables;
  const model::LatentSpec& latent = architecture.decoder.latent;
  const std::int64_t turned =
      latent.key_value_rank > 0 ? latent.rope_dim : architecture.config.head_dim;
  for (const model::RotarySpec& rotary : architecture.decoder.rotaries)
    tables.push_back(std::make_shared<const kernels::RotaryTable>(
        model::rotary_frequencies(rotary, turned), model::rotary_factor(rotary),
        architecture.dtype));
  return tables;
}

std::unique_ptr<Layer> make_layer(const model::Architecture& architecture,
                                  const model::LayerSpec& spec, const Tables& tables) {
  if (spec.kind == model::LayerKind::kEmbedding) return make_embedding(architecture);
  if (spec.kind == model::LayerKind::kHead) return make_head(architecture);
  const int rotary = architecture.decoder.layers[static_cast<std::size_t>(spec.index - 1)].rotary;
  return make_decoder_block(architecture, spec,
                            rotary < 0 ? nullptr : tables[static_cast<std::size_t>(rotary)]);
}

}  // namespace

std::vector<std::unique_ptr<Layer>> make_layers(const model::Architecture& architecture) {
  const Tables tables = rotary_tables(architecture);
  std::vector<std::unique_ptr<Layer>> layers;
  for (const model::LayerSpec& spec : architecture.layers)
    layers.push_back(spec.held ? make_layer(architecture, spec, tables) : nullptr);
  return layers;
}

}  // namespace ptrain::layers
