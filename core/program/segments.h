#pragma once

#include <optional>
#include <vector>

#include "core/model/exchanges.h"
#include "core/program/action.h"

namespace ptrain::program {

// A layer's call that needs other ranks is cut into segments, one action each, with an EXCHANGE
// between two: lL.0, EXCHANGE lL.0, lL.1, ... A call that needs none is one action without a
// segment.

// What FORWARD, RECOMPUTE, BACKWARD and BACKWARD_INPUT do with their layer; none for other kinds.
std::optional<model::Call> call_of(const Action& action);
// Those of the call that the action is, or is a segment of.
std::vector<model::ExchangeSpec> exchanges_of(const Action& action,
                                              const model::Architecture& architecture);

inline bool begins_call(const Action& action) { return action.segment <= 0; }
bool ends_call(const Action& action, const model::Architecture& architecture);

// EXCHANGE has two uses. Between two segments of a layer's call:
inline bool exchanges_within_call(const Action& action) {
  return action.kind == Kind::kExchange && action.layer_first >= 0;
}
// Once a step, with SYNC_TIED: adds up gradients of parameters that several ranks of a model hold.
inline bool sums_copies(const Action& action) {
  return action.kind == Kind::kSyncTied ||
         (action.kind == Kind::kExchange && !exchanges_within_call(action));
}

}  // namespace ptrain::program
