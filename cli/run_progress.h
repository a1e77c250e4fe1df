#pragma once

#include "core/base/result.h"
#include "core/run/directory.h"
#include "core/run/plan.h"

namespace ptrain::cli {

// A run whose checkpoints are gone must not begin anew unasked.
Status check_not_lost(const run::Directory& directory);

// Whether all steps are done. A finished run is left alone, unless its last checkpoint has suffered
// since, which is said: then an older one goes on, and its last steps are made again.
bool is_finished(const run::Directory& directory, const run::Plan& plan);

}  // namespace ptrain::cli
