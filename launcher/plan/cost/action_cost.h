#pragma once

#include <string_view>

#include "core/program/action.h"
#include "launcher/plan/cost/context.h"

namespace ptrain::plan {

// Where the seconds of a step go. Work of all lanes; on one core they add up to the step, but for
// offloading, which goes on beside it.
enum class Term {
  kForward,
  kBackward,
  kRecompute,
  kGather,
  kReduce,
  kOptimizer,
  kOffload,
  kExchange
};
inline constexpr int kNumTerms = 8;
std::string_view to_string(Term term);
Term term_of(program::Kind kind);

// Seconds of an action on its lane: the sum of all costs in the table of action_cost.cc, each of
// which knows its own kinds. A new kind of work adds one file and one row there.
double action_seconds(const program::Action& action, const CostContext& context);

}  // namespace ptrain::plan
