#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "launcher/submit/slurm_text.h"

namespace ptrain::submit {

// Slurm's commands, each run to its end with a time limit. Errors (kEnvironment) carry Slurm's own
// words.

// Whether sbatch is in PATH.
bool has_slurm();

struct Submission {
  std::vector<std::string> arguments;    // of sbatch
  std::string script;                    // file; empty: only what it asks for is tested
  std::vector<std::string> environment;  // names that the job gets; none: all
};

// sbatch --test-only: whether Slurm would take the job; what it says about its start.
Result<std::string> test(const Submission& submission);

// sbatch: the number of the job.
Result<std::string> submit(const Submission& submission);

// Removes a job that waits, or ends one.
Status cancel(const std::string& job);

// Sends a signal to the batch script of a running job, which is our supervisor.
Status signal_script(const std::string& job, const std::string& signal);

}  // namespace ptrain::submit
