#pragma once

#include <string>
#include <string_view>

#include "core/schedule/schedule.h"
#include "core/schedule/simulate.h"

namespace ptrain::schedule {

// A line a rank over a common time axis, at most `most_columns` wide. Cells are named where that
// fits ("2F7", or "F7" where a rank has one stage), else columns have the letter of what runs in
// their middle; '.' is idle.
std::string diagram(const Schedule& schedule, const Simulation& simulation, int most_columns);

// A picture of the same for browsers, coloured by kind of work, with the name as its title.
std::string to_svg(std::string_view name, const Schedule& schedule, const Simulation& simulation);

}  // namespace ptrain::schedule
