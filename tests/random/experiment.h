#pragma once

#include "core/base/result.h"
#include "core/mesh/layout.h"
#include "core/model/architecture.h"
#include "launcher/plan/space.h"
#include "tests/parity/trajectory.h"
#include "tests/random/case.h"

namespace ptrain::random {

recipe::Model model_of(const Case& one);
recipe::Optimizer optimizer_of(const Case& one);
// The whole model as the planner sees it. Errors (kUsage): sizes that do not suit each other.
Result<model::Architecture> architecture_of(const Case& one);

// What the planner looks into where the recipe fixes the case's schedule and stages.
plan::Space space_of(const Case& one, const model::Architecture& architecture);
// Errors (kUsage): rows that do not divide, words that nobody knows, stages that cannot be.
Result<mesh::Layout> layout_of(const Case& one, const model::Architecture& architecture);

// Whether ptrain runs the case: by the planner's rules, and by the compiler for each rank, whose
// world of programs is executed symbolically. Errors: kUsage; what the rules let through and the
// rest refuses is kBug.
Status check(const Case& one);

// The training, and the same on one rank. The case must be legal.
parity::Experiment experiment_of(const Case& one);
parity::Experiment one_rank(const Case& one);

}  // namespace ptrain::random
