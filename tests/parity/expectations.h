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
// The same in a pipeline.
inline constexpr program::MemoryClass kPredictedInPipelines[] = {
    program::MemoryClass::kParameters, program::MemoryClass::kGradients,
    program::MemoryClass::kOptimizer,  program::MemoryClass::kGather,
    program::MemoryClass::kStash,      program::MemoryClass::kCommunication,
    program::MemoryClass::kTemporary};
// Of these, what does not depend on the experts that tokens go to.
inline constexpr program::MemoryClass kPredictedOfAnyRouting[] = {
    program::MemoryClass::kParameters, program::MemoryClass::kGradients,
    program::MemoryClass::kOptimizer, program::MemoryClass::kGather,
    program::MemoryClass::kCommunication};

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

// Losses and norms of every step.
void expect_losses_and_norms(const Trajectory& run, const Trajectory& truth, double tolerance);

// An experiment of fp64 gives all of the above as on one rank: to 1e-9, and parameters to
// bound_of_parameters(). `left_out`: of gradients.
void expect_one_process_in_float64(const Experiment& experiment, std::string_view left_out = "");
// Ten steps of an experiment of fp32 give losses and norms as on one rank to 1e-5, and again the
// same bits.
void expect_one_process_in_float32(Experiment experiment);
// The first step of a model with experts in bf16, whose products ranks round in parts, gives losses
// to 5e-4 and gradients to 2e-2 as on one rank; what experts add is no rounding there. Later a
// token near a tie goes elsewhere.
void expect_experts_of_one_process_in_bfloat16(Experiment experiment);

// What routers did: whole numbers alike, losses and entropy within the tolerance.
void expect_routers(const Trajectory& run, const Trajectory& truth, double tolerance);

// Losses, norms and parameters to the bit.
void expect_same_bits(const Trajectory& run, const Trajectory& truth);
// Two runs give the same bits.
void expect_repeats(const Experiment& experiment);
// Every rank's peak of these classes is the predicted one.
void expect_predicted_bytes(const Experiment& experiment, const Trajectory& run,
                            std::span<const program::MemoryClass> classes);

}  // namespace ptrain::parity
