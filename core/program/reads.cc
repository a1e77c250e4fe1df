#include "core/program/reads.h"

namespace ptrain::program {

int layer_of(const Action& action) {
  const bool works = action.kind == Kind::kForward || action.kind == Kind::kBackward ||
                     action.kind == Kind::kRecompute;
  return works ? action.layer_first : -1;
}

std::span<const int> groups_read(const Action& action, const model::Architecture& architecture) {
  const int index = layer_of(action);
  if (index < 0) return {};
  const model::LayerSpec& layer = architecture.layers[static_cast<std::size_t>(index)];
  const bool adds_rows =
      layer.kind == model::LayerKind::kEmbedding && action.kind == Kind::kBackward;
  if (adds_rows) return {};
  return layer.groups;
}

}  // namespace ptrain::program
