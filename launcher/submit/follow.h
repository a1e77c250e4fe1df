#pragma once

#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/run/directory.h"
#include "launcher/submit/job_state.h"
#include "launcher/supervise/signals.h"

namespace ptrain::submit {

// How a job ended that left no verdict, by what Slurm says of it.
struct Ending {
  ExitCode code = ExitCode::kEnvironment;
  std::string reason;
  std::string next;
  bool operator==(const Ending&) const = default;
};
// `has_output`: whether its script has begun to write; `resume`: the command that goes on.
Ending ending_of(const std::string& job, const JobState& state, bool has_output,
                 const std::string& resume);

// Shows on stderr what the run's job writes and how it stands in the queue, until it has ended or a
// signal comes, which leaves the job alone. The code of the run's verdict; none: a signal came.
Result<std::optional<ExitCode>> follow(const run::Directory& directory,
                                       supervise::StopSignals& signals);

}  // namespace ptrain::submit
