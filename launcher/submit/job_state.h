#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"

namespace ptrain::submit {

enum class JobPhase {
  kWaiting,    // in the queue, or put back there
  kRunning,    // its script runs, begins or ends
  kEnded,      // Slurm still knows how
  kForgotten,  // Slurm knows nothing of it any more
  kUnknown,    // Slurm does not answer
};

struct JobState {
  JobPhase phase = JobPhase::kUnknown;
  std::string word;    // Slurm's own: PENDING, NODE_FAIL
  std::string reason;  // Slurm's own: Resources; kUnknown: why nothing is known
  std::string nodes;   // that it has or had
  std::string start;   // when it began, or is expected to
  int code = 0;        // of its script, once ended
  int signal = 0;
  std::string task = {};  // of an array, that the above is of: "2"; empty: of the job
  bool operator==(const JobState&) const = default;
};

bool is_over(const JobState& state);  // ended or forgotten

// From `scontrol -o show job`, or from `sacct -nXP -o State,ExitCode,NodeList,JobID`. Of an array
// whose tasks run one after the other: how the one that runs stands, else those that wait, else the
// last that ran. Errors: it says nothing of a job.
Result<JobState> state_in_scontrol(std::string_view text);
Result<JobState> state_in_sacct(std::string_view text);

// Asks scontrol, and once that has forgotten the job, sacct.
JobState look_up(const std::string& job);

// As Slurm names a task of an array: "7_2"; "7" where there is no task.
std::string name_of(const std::string& job, const std::string& task);
// "7", or "7_2" where this is the state of a task.
std::string name_of(const std::string& job, const JobState& state);

// "waits in the queue (Resources)", "has ended: TIMEOUT".
std::string in_words(const JobState& state);

}  // namespace ptrain::submit
