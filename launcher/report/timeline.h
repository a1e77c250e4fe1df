#pragma once

#include <string>

#include "launcher/report/story.h"

namespace ptrain::report {

// The traced step: rank 0 as predicted over what the ranks did, on one clock; then seconds by kind
// of action. Where nothing was traced it says how to have it.
std::string timeline(const Story& story);

}  // namespace ptrain::report
