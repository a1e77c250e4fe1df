#pragma once

#include <string>

#include "launcher/report/story.h"

namespace ptrain::report {

// The whole report as one HTML file that loads nothing from anywhere and runs no script. All that
// comes from a run (names, messages) is escaped.
std::string page(const Story& story);

}  // namespace ptrain::report
