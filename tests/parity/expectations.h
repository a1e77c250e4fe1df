#pragma once

#include <span>
#include <string_view>

#include "tests/parity/trajectory.h"

namespace ptrain::parity {

// The same training on one rank, a step of which is one micro-batch.
Experiment on_one_rank(const Experiment& experiment);

// What one stage's ranks take, class by class, is predicted to the byte.
inline constexpr program::MemoryClass kPredictedClasses[] = {
    program::MemoryClass::kParameters, program::MemoryClass::kGradients,
    program::MemoryClass::kOptimizer,  program::MemoryClass::kGather,
    program::MemoryClass::kStash,      program::MemoryClass::kTemporary};

// What a run shares with the same training on one rank; tolerances are relative.
void expect_losses(const Trajectory& run, const Trajectory& truth, double tolerance);
void expect_norms(const Trajectory& run, const Trajectory& truth, double tolerance);
// By norm, of the first step; but for names that end so, where that is not empty.
void expect_gradients(const Trajectory& run, const Trajectory& truth, double tolerance,
                      std::string_view left_out = "");
// Each element, up to `bound`.
void expect_parameters(const Trajectory& run, const Trajectory& truth, double bound);
// How far parameters of fp64 may lie apart after the experiment.
double bound_of_parameters(const Experiment& experiment);

// What routers did: whole numbers alike, losses and entropy within the tolerance.
void expect_routers(const Trajectory& run, const Trajectory& truth, double tolerance);

// Two runs give the same bits.
void expect_repeats(const Experiment& experiment);
// Every rank's peak of these classes is the predicted one.
void expect_predicted_bytes(const Experiment& experiment, const Trajectory& run,
                            std::span<const program::MemoryClass> classes);

}  // namespace ptrain::parity
