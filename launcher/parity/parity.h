#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/mesh/layout.h"
#include "core/parity/compare.h"
#include "core/run/directory.h"
#include "core/run/event.h"
#include "core/run/plan.h"
#include "launcher/supervise/supervisor.h"

namespace ptrain::parity {

// A shape's layout beside one rank.
struct ShapeParity {
  std::string name;
  mesh::Layout layout;
  std::int64_t tokens = 0;  // of the step that was compared
  Comparison comparison;
};

struct Outcome {
  run::Verdict verdict;  // kRankError where a shape differs
  std::vector<ShapeParity> shapes;
};

// Has the ranks of each shape of the plan make its first step with one micro-batch each, then one
// rank the same step, and compares what every segment made. It writes attempts, events and a
// verdict into the run directory, but trains nothing. Errors: what keeps it from comparing.
Result<Outcome> run_parity(const supervise::Setup& setup);

// Whether the run was one of these, so that there is nothing to go on with.
bool is_parity_run(const run::Directory& directory);

}  // namespace ptrain::parity
