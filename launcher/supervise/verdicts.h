#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/run/event.h"
#include "launcher/supervise/policy.h"

namespace ptrain::supervise {

// What the supervisor itself says of nodes, and how a run ends by its word rather than by that of
// an attempt. `resume` is the command that goes on with the run.
using Nodes = std::vector<std::string>;

// "Slurm has taken node3, node4 from the job"
std::string taken_from_job_text(const Nodes& nodes);

// Nodes that do not answer before the first attempt: it starts without them ...
std::string left_out_text(const Nodes& silent);
Decision start_without_decision(const Nodes& silent);
// ... or cannot (kEnvironment); `why` may be empty.
Status silent_nodes_error(const Nodes& silent, const std::string& why);

// The ranks of this attempt could not even be started; 0: no attempt was begun.
run::Verdict not_started_verdict(const Error& error, int attempt, const std::string& resume);

// Of an attempt that could not start since Slurm has taken nodes of its plan.
run::Verdict taken_nodes_verdict(run::Verdict verdict, Nodes taken);

// After an attempt that failed there is no restart: a signal asked for the end, Slurm has ended the
// job (`state` is its word), or too few nodes are left.
run::Verdict stopped_between_verdict(run::Verdict verdict, int signal, const std::string& resume);
run::Verdict ended_by_slurm_verdict(run::Verdict verdict, const std::string& job,
                                    const std::string& state, const std::string& resume);
run::Verdict short_of_nodes_verdict(run::Verdict verdict, const Nodes& excluded, const Error& error,
                                    const std::string& resume);

// The time of a job was up that has saved no step.
run::Verdict none_follows_verdict(run::Verdict verdict);

}  // namespace ptrain::supervise
