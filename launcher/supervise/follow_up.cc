#include "launcher/supervise/follow_up.h"

#include <fmt/format.h>

#include "launcher/base/file.h"
#include "launcher/cluster/slurm_command.h"
#include "launcher/supervise/run_folder.h"

namespace ptrain::supervise {

using recipe::AtTimeLimit;

namespace {

Status run_slurm(const std::vector<std::string>& arguments, const std::string& what,
                 const std::string& remedy) {
  const auto done = cluster::ask_slurm(arguments);
  if (done) return {};
  return fail(ExitCode::kEnvironment, fmt::format("{}: {}", what, done.error().message), remedy);
}

}  // namespace

std::string follow_up_text(AtTimeLimit how, const std::string& job) {
  switch (how) {
    case AtTimeLimit::kStop:
      return "";
    case AtTimeLimit::kRequeue:
      return fmt::format("Slurm starts job {} again, and it goes on", job);
    case AtTimeLimit::kChain:
      return fmt::format("a job that follows {} goes on", job);
  }
  return "";
}

std::string next_task_text(const std::string& next) {
  return fmt::format("task {} of the job array goes on, where it is still in the queue", next);
}

Status cancel_waiting(const std::string& array) {
  return run_slurm({"scancel", "--state=PENDING", array},
                   fmt::format("tasks of job array {} that wait could not be cancelled", array),
                   "cancel them with `scancel " + array + "`");
}

Status follow_up(AtTimeLimit how, const std::string& job, const run::Directory& directory) {
  const std::string remedy = "continue with " + resume_command(directory);
  const std::string script = directory.script();
  if (how == AtTimeLimit::kStop) return {};
  if (how == AtTimeLimit::kRequeue)
    return run_slurm({"scontrol", "requeue", job}, "Slurm does not start the job again", remedy);
  if (!is_regular_file(script))
    return fail(ExitCode::kUsage, fmt::format("there is no batch script {} to submit", script),
                "chain works for runs that ptrain has submitted; " + remedy);
  return run_slurm({"sbatch", "--parsable", "--dependency=afterany:" + job, script},
                   "no job could be submitted to follow", remedy);
}

}  // namespace ptrain::supervise
