#include "core/program/reads.h"

#include <algorithm>

namespace ptrain::program {
namespace {

const model::LayerSpec& layer_at(int index, const model::Architecture& architecture) {
  return architecture.layers[static_cast<std::size_t>(index)];
}

}  // namespace

int layer_of(const Action& action) {
  switch (action.kind) {
    case Kind::kForward:
    case Kind::kBackward:
    case Kind::kBackwardInput:
    case Kind::kBackwardWeight:
    case Kind::kRecompute:
      return action.layer_first;
    default:
      return -1;
  }
}

std::span<const int> groups_read(const Action& action, const model::Architecture& architecture) {
  const int index = layer_of(action);
  if (index < 0 || action.kind == Kind::kBackwardWeight) return {};
  const model::LayerSpec& layer = layer_at(index, architecture);
  const bool adds_rows =
      layer.kind == model::LayerKind::kEmbedding && action.kind != Kind::kForward;
  if (adds_rows) return {};
  return layer.groups;
}

std::span<const int> groups_written(const Action& action, const model::Architecture& architecture) {
  switch (action.kind) {
    case Kind::kBackward:
    case Kind::kBackwardInput:
    case Kind::kBackwardWeight:
      return layer_at(action.layer_first, architecture).groups;
    default:
      return {};
  }
}

bool writes(const Action& action, int group, const model::Architecture& architecture) {
  return std::ranges::find(groups_written(action, architecture), group) !=
         groups_written(action, architecture).end();
}

std::vector<bool> groups_held(std::span<const Action> actions,
                              const model::Architecture& architecture) {
  std::vector<bool> held(static_cast<std::size_t>(architecture.num_groups()));
  for (const Action& action : actions)
    if (const int layer = layer_of(action); layer >= 0)
      for (const int group : layer_at(layer, architecture).groups)
        held[static_cast<std::size_t>(group)] = true;
  return held;
}

}  // namespace ptrain::program
