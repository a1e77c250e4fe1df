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

}  // namespace ptrain::program
