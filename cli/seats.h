#pragma once

#include <string>

#include "core/run/plan.h"

namespace ptrain::cli {

// Tells the libraries of this rank, by variables, which devices of this node are its own and on
// which network it meets the others; says so in its log. What the user has set stays.
void take_seat(const run::Plan& plan, int rank, const std::string& control_host);

// The map of ranks for --dry-run, with the devices that each would have: asked of the nodes where
// the plan is for a job that we are in or for this machine, else found by ranks once they start.
std::string seat_map(const run::Plan& plan);

}  // namespace ptrain::cli
