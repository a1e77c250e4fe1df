#include "launcher/submit/commands.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "launcher/base/find_program.h"
#include "launcher/base/subprocess.h"
#include "launcher/cluster/slurm_command.h"

namespace ptrain::submit {

namespace {

// What a job always gets: without these no program is found or prints what one can read.
bool is_always_passed(std::string_view name) {
  constexpr std::string_view kNames[] = {"PATH", "HOME", "USER",   "LOGNAME",         "SHELL",
                                         "LANG", "TZ",   "TMPDIR", "LD_LIBRARY_PATH", "MODULEPATH"};
  return std::ranges::find(kNames, name) != std::end(kNames) || name.starts_with("LC_") ||
         name.starts_with("SLURM_");
}

// sbatch passes on all variables that it has itself: env takes the others from it, by name, so that
// no value stands in a command line. SBATCH_ variables would say more than the recipe does.
std::vector<std::string> command_of(const Submission& submission, std::string_view how) {
  std::vector<std::string> command;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string name(*entry, std::string_view(*entry).find('='));
    const bool wanted =
        submission.environment.empty() || is_always_passed(name) ||
        std::ranges::find(submission.environment, name) != submission.environment.end();
    if (!wanted || name.starts_with("SBATCH_")) command.insert(command.end(), {"-u", name});
  }
  command.insert(command.end(), {"sbatch", std::string(how)});
  command.insert(command.end(), submission.arguments.begin(), submission.arguments.end());
  command.push_back(submission.script.empty() ? "--wrap=true" : submission.script);
  return command;
}

Result<base::Finished> run(const Submission& submission, std::string_view how) {
  return base::run_to_end(cluster::slurm_command(command_of(submission, how)),
                          cluster::kSlurmPatience);
}

}  // namespace

bool has_slurm() { return !base::find_program("sbatch").empty(); }

Result<std::string> test(const Submission& submission) {
  PTRAIN_TRY(const base::Finished done, run(submission, "--test-only"));
  if (done.status == base::ExitStatus{}) return cluster::slurm_reason(done.output);
  return fail(ExitCode::kEnvironment,
              fmt::format("Slurm would not take this job: {}", cluster::slurm_reason(done.output)));
}

Result<std::string> submit(const Submission& submission) {
  PTRAIN_TRY(const base::Finished done, run(submission, "--parsable"));
  if (!(done.status == base::ExitStatus{}))
    return fail(ExitCode::kEnvironment,
                fmt::format("Slurm does not take the job: {}", cluster::slurm_reason(done.output)));
  // Warnings come before; the last line is JOB or JOB;CLUSTER.
  std::string last = done.output;
  while (!last.empty() && last.back() == '\n') last.pop_back();
  last = last.substr(last.find_last_of('\n') + 1);
  const std::string job = last.substr(0, last.find(';'));
  if (!job.empty() && std::ranges::all_of(job, [](char c) { return c >= '0' && c <= '9'; }))
    return job;
  return fail(ExitCode::kEnvironment, fmt::format("sbatch says '{}', which names no job",
                                                  cluster::slurm_reason(done.output)));
}

Status cancel(const std::string& job) {
  PTRAIN_CHECK(cluster::ask_slurm({"scancel", job}));
  return {};
}

Status signal_script(const std::string& job, const std::string& signal) {
  PTRAIN_CHECK(cluster::ask_slurm({"scancel", "--batch", "--signal=" + signal, job}));
  return {};
}

}  // namespace ptrain::submit
