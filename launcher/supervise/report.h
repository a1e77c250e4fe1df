#pragma once

#include <string>
#include <vector>

#include "core/run/directory.h"
#include "core/run/event.h"

namespace ptrain::supervise {

// "ptrain: finished at step 40", or "ptrain: FAILED (13) rank 1: no progress ...; step 7; NEXT".
std::string verdict_line(const run::Verdict& verdict);

// What a run says at its end after a failure: the tail of the failed rank's log, else of what the
// launcher program wrote. None after success.
std::vector<std::string> failure_lines(const run::Directory& directory,
                                       const run::Verdict& verdict);

// The last `count` lines of a file; none when it cannot be read.
std::vector<std::string> tail_of(const std::string& path, std::size_t count);

}  // namespace ptrain::supervise
