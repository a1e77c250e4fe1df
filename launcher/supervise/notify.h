#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/run/directory.h"
#include "core/run/event.h"

namespace ptrain::supervise {

// Runs the recipe's failure.notify, without a shell and for half a minute at most. It finds
// PTRAIN_RUN, PTRAIN_CODE and PTRAIN_VERDICT, the verdict's line, in its environment.
Status notify(const std::vector<std::string>& command, const run::Directory& directory,
              const run::Verdict& verdict);

}  // namespace ptrain::supervise
