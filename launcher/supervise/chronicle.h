#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/run/event.h"

namespace ptrain::supervise {

// What became of a run, attempt by attempt, for people: where it ran, how far it came, why it
// ended and what was decided then. A line each.
std::vector<std::string> chronicle(std::span<const run::Event> events);

// "trained for 31.2 s of 40.0 s in which machines were held (78 %)"; empty where nothing was held.
std::string goodput_text(double trained_s, double held_s);

}  // namespace ptrain::supervise
