#include "core/program/segments.h"

#include "core/program/keep.h"
#include "core/program/reads.h"

namespace ptrain::program {

std::optional<model::Call> call_of(const Action& action) {
  switch (action.kind) {
    case Kind::kForward:
      return action.attribute("keep") == to_string(Keep::kNone) ? model::Call::kEvaluate
                                                                : model::Call::kForward;
    case Kind::kRecompute:
      return action.attribute("from") == to_string(Keep::kInput) ? model::Call::kRecompute
                                                                 : model::Call::kRemake;
    case Kind::kBackward:
    case Kind::kBackwardInput:
      return model::Call::kBackward;
    default:
      return std::nullopt;
  }
}

std::vector<model::ExchangeSpec> exchanges_of(const Action& action,
                                              const model::Architecture& architecture) {
  const auto call = call_of(action);
  if (!call) return {};
  const auto layer = static_cast<std::size_t>(layer_of(action));
  return model::exchanges_of(architecture, architecture.layers[layer], *call);
}

bool ends_call(const Action& action, const model::Architecture& architecture) {
  if (action.segment < 0) return true;
  return action.segment == static_cast<int>(exchanges_of(action, architecture).size());
}

}  // namespace ptrain::program
