#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/run_progress.h"
#include "cli/start_run.h"
#include "core/base/hash.h"
#include "launcher/base/file.h"
#include "launcher/base/plan_file.h"
#include "launcher/cluster/slurm.h"
#include "launcher/recipe/yaml.h"
#include "launcher/submit/job_file.h"
#include "launcher/submit/rank_map.h"
#include "launcher/supervise/event_log.h"
#include "launcher/supervise/run_folder.h"

namespace ptrain::cli {

namespace {

// What is trained is what was submitted; that the user's own recipe has changed since is worth
// knowing.
void note_changed_recipe(const submit::JobFile& job) {
  const auto text = read_file(job.recipe, recipe::kMostYamlBytes);
  if (text && hash128_hex(*text) != job.recipe_hash)
    say(fmt::format("note: {} was changed since this job was submitted, and is not what is trained",
                    job.recipe));
}

// What was submitted is checked at the first start; when Slurm starts the job again, or one that
// follows it, attempts may have written another plan themselves.
Status check_job(const run::Directory& directory) {
  if (!is_regular_file(directory.job())) return {};
  PTRAIN_TRY(submit::JobFile job, submit::read_job(directory));
  const std::string here = cluster::find_allocation().job;
  if (job.started && (here.empty() || here == job.job)) return {};
  if (!job.started) {
    note_changed_recipe(job);
    PTRAIN_CHECK(submit::check_unchanged(directory, job));
  }
  job.started = true;
  if (!here.empty()) job.job = here;
  return submit::write_job(directory, job);
}

// The plan on the nodes that Slurm gave.
Result<run::Plan> plan_on_nodes(const run::Directory& directory) {
  PTRAIN_TRY(const run::Plan plan, read_plan(directory.plan()));
  const auto allocation = cluster::find_allocation();
  if (allocation.job.empty()) return plan;
  PTRAIN_TRY(const auto names, cluster::allocated_nodes(allocation));
  run::Plan placed = submit::with_nodes(plan, names);
  if (!(placed == plan)) PTRAIN_CHECK(write_plan(directory.plan(), placed));
  return placed;
}

Result<ExitCode> train(const run::Directory& directory, const supervise::RunLock& lock,
                       supervise::StopSignals& signals) {
  PTRAIN_CHECK(check_job(directory));
  PTRAIN_TRY(const run::Plan plan, plan_on_nodes(directory));
  if (supervise::newest_step(directory) < 0) PTRAIN_CHECK(check_not_lost(directory));
  if (is_finished(directory, plan)) {
    say(fmt::format("ptrain: {} is finished: all of its steps are done", directory.root));
    return ExitCode::kDone;
  }
  PTRAIN_TRY(const auto backend, check_start(plan));
  return start_run({directory, plan, *backend}, lock, signals, false);
}

// Whoever follows the run learns why it did not begin.
void leave_verdict(const run::Directory& directory, const Error& error) {
  run::Verdict verdict;
  verdict.code = error.code;
  verdict.reason = error.message;
  verdict.next = error.hint;
  verdict.attempt = supervise::next_attempt(directory) - 1;
  (void)supervise::EventLog(directory).write(verdict);
}

}  // namespace

Result<ExitCode> cmd_supervise(const SuperviseArguments& arguments) {
  // It was written on another machine, maybe a moment ago.
  (void)seen_within(kSeenWithin, arguments.run,
                    [&] { return is_regular_file(run::Directory{arguments.run}.plan()); });
  PTRAIN_TRY(const run::Directory directory, supervise::open_run(arguments.run));
  supervise::StopSignals signals;
  PTRAIN_TRY(const auto lock, supervise::RunLock::take(directory));
  auto code = train(directory, lock, signals);
  if (!code) leave_verdict(directory, code.error());
  return code;
}

}  // namespace ptrain::cli
