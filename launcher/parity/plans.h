#pragma once

#include <cstddef>

#include "core/base/result.h"
#include "core/run/plan.h"

namespace ptrain::parity {

// The plan of one shape alone, with one micro-batch a rank; a pipeline keeps all of them, for which
// its order was made.
run::Plan with_one_micro_batch(const run::Plan& plan, std::size_t shape);

// The same micro-batches, one after the other, on one rank that shards and recomputes nothing.
run::Plan on_one_rank(const run::Plan& plan);

// The lowest in which any layer of its first shape multiplies.
recipe::Precision precision_of(const run::Plan& plan);

// Whether this machine has the memory for a plan of one rank. Errors: kNothingFits.
Status check_memory(const run::Plan& plan);

}  // namespace ptrain::parity
