#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/run/control.h"
#include "core/run/directory.h"
#include "core/run/plan.h"

namespace ptrain::supervise {

// "ptrain: finished at step 40", or "ptrain: FAILED (13) rank 1: no progress ...; step 7; NEXT".
std::string verdict_line(const run::Verdict& verdict);

// What a run says at its end: the tail of the failed rank's log, predicted beside measured,
// verdict.
std::vector<std::string> final_lines(const run::Plan& plan, const run::Directory& directory,
                                     const run::Verdict& verdict,
                                     std::span<const run::StepDone> steps);

// The last `count` lines of a file; none when it cannot be read.
std::vector<std::string> tail_of(const std::string& path, std::size_t count);

// "predicted 0.200 s a step, measured 0.210 s (+5.0 %)" and the same for bytes, of the last shape.
std::vector<std::string> comparison(const run::Plan& plan, std::span<const run::StepDone> steps);

}  // namespace ptrain::supervise
