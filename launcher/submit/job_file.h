#pragma once

#include <string>

#include "core/base/result.h"
#include "core/run/directory.h"

namespace ptrain::submit {

// job.json: the Slurm job that was submitted last for a run, and what it was to train.
struct JobFile {
  std::string job;          // number, of an array that of all its tasks; empty: sbatch is silent
  std::string recipe;       // where the user's recipe lies
  std::string recipe_hash;  // of the run's copy of it, as submitted
  std::string plan_hash;    // of plan.json, as submitted
  std::string build;
  bool started = false;   // its script has begun
  int num_tasks = 0;      // of the array that the job is; 0: it is none
  std::string task = {};  // of that array, which began last
  bool operator==(const JobFile&) const = default;
};

// What its output and its events are named after: "7", or "7_2" in an array.
std::string name_of(const JobFile& file);

std::string to_text(const JobFile& file);
Result<JobFile> job_file_from_text(std::string_view text);

// Files of the run as they are now; `recipe`: see above.
Result<JobFile> describe(const run::Directory& directory, const std::string& recipe);

Result<JobFile> read_job(const run::Directory& directory);  // an error where none was submitted
Status write_job(const run::Directory& directory, const JobFile& file);
// The number that sbatch gave. A job that has begun knows it, and has written it itself.
Status set_number(const run::Directory& directory, const std::string& job);
// Whether a job was submitted for the run, at any time.
bool has_job(const run::Directory& directory);

// Error: what is to be trained is no longer what was submitted, or this is another ptrain.
Status check_unchanged(const run::Directory& directory, const JobFile& submitted);

// Whether verdict.json was written since the job was submitted, by whatever attempt; of an array:
// since the task began that job.json names.
bool has_verdict(const run::Directory& directory, const JobFile& file);

}  // namespace ptrain::submit
