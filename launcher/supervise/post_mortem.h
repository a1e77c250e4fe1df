#pragma once

#include <string>

#include "core/run/directory.h"
#include "core/run/event.h"
#include "core/run/plan.h"

namespace ptrain::supervise {

// What someone needs who was not there: verdict, what each rank said last, the last events, the end
// of each log, the plan's layouts and what Slurm says of the job. Values of environment variables
// that sound like secrets are not in it, even where a log has them.
std::string post_mortem(const run::Directory& directory, const run::Plan& plan,
                        const run::Verdict& verdict, const std::string& slurm_facts);

// What `scontrol show job` says; empty where there is no job, or no answer within two seconds.
std::string slurm_facts(const std::string& job);

}  // namespace ptrain::supervise
