#include <fmt/format.h>
#include <poll.h>
#include <string.h>

#include <chrono>
#include <cstdlib>
#include <optional>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/run_progress.h"
#include "cli/start_run.h"
#include "core/base/error_line.h"
#include "core/base/hash.h"
#include "launcher/base/file.h"
#include "launcher/base/plan_file.h"
#include "launcher/cluster/slurm.h"
#include "launcher/recipe/yaml.h"
#include "launcher/submit/job_file.h"
#include "launcher/submit/job_state.h"
#include "launcher/submit/rank_map.h"
#include "launcher/supervise/event_log.h"
#include "launcher/supervise/follow_up.h"
#include "launcher/supervise/policy.h"
#include "launcher/supervise/report.h"
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

// What job.json says once this job has begun.
submit::JobFile begun(submit::JobFile file) {
  const auto here = cluster::find_allocation();
  file.started = true;
  if (here.job.empty()) return file;
  const bool is_task = file.num_tasks > 0 && !here.task.empty();
  file.job = is_task ? here.array : here.job;
  file.task = is_task ? here.task : "";
  return file;
}

// What was submitted is checked at the first start; when Slurm starts the job again, or one that
// follows it, attempts may have written another plan themselves.
Status check_job(const run::Directory& directory, const submit::JobFile& before,
                 const submit::JobFile& now) {
  if (!before.started) {
    note_changed_recipe(before);
    PTRAIN_CHECK(submit::check_unchanged(directory, before));
  }
  return now == before ? Status{} : submit::write_job(directory, now);
}

// How the task before this one has ended the run, where that was not for want of time. Slurm may
// start this one all the same: tasks that wait are cancelled too late, or not at all.
std::optional<run::Verdict> end_before(const run::Directory& directory,
                                       const submit::JobFile& before, const submit::JobFile& now) {
  const bool follows = now.job == before.job && now.task != before.task && !before.task.empty();
  if (!follows || !submit::has_verdict(directory, before)) return std::nullopt;
  const auto verdict = supervise::read_verdict(directory.verdict());
  if (!verdict || supervise::is_end_of_job(verdict->code)) return std::nullopt;
  return *verdict;
}

// "7_3"; empty: this is no task, or the last.
std::string task_after(const submit::JobFile& now) {
  const int number = std::atoi(now.task.c_str());
  if (now.task.empty() || number >= now.num_tasks) return "";
  return submit::name_of(now.job, std::to_string(number + 1));
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
  submit::JobFile job;
  if (is_regular_file(directory.job())) {
    PTRAIN_TRY(const submit::JobFile before, submit::read_job(directory));
    job = begun(before);
    if (const auto end = end_before(directory, before, job)) {
      say("ptrain: the run has ended, and nothing is left to this task");
      say(supervise::verdict_line(*end));
      return end->code;
    }
    PTRAIN_CHECK(check_job(directory, before, job));
  }
  PTRAIN_TRY(const run::Plan plan, plan_on_nodes(directory));
  if (supervise::newest_step(directory) < 0) PTRAIN_CHECK(check_not_lost(directory));
  if (is_finished(directory, plan)) {
    say(fmt::format("ptrain: {} is finished: all of its steps are done", directory.root));
    return ExitCode::kDone;
  }
  PTRAIN_TRY(const auto backend, check_start(plan));
  return start_run(
      {directory, plan, *backend, job.task.empty() ? "" : name_of(job), task_after(job)}, lock,
      signals, false);
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

// The number of the array that this is a task of, which need not have come as far as to write it;
// empty: it is none.
std::string own_array(const run::Directory& directory) {
  const auto file = submit::read_job(directory);
  const submit::JobFile now = file ? begun(*file) : submit::JobFile{};
  return now.task.empty() ? "" : now.job;
}

// Tasks that wait would only find that the run has ended.
void end_array(const std::string& array, ExitCode code) {
  if (array.empty() || supervise::is_end_of_job(code)) return;
  if (const auto done = supervise::cancel_waiting(array); !done)
    say("warning: " + error_line(done.error()));
}

// Slurm lets a task begin while the one before it still ends, which may take as long as KillWait,
// 30 s where a site has set no other.
Result<supervise::RunLock> lock_in_turn(const run::Directory& directory, const std::string& array,
                                        supervise::StopSignals& signals) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::seconds(array.empty() ? 0 : 120);
  for (;;) {
    auto lock = supervise::RunLock::take(directory);
    if (lock || lock.error().code != ExitCode::kUsage || Clock::now() >= end) return lock;
    pollfd wake{signals.file(), POLLIN, 0};
    ::poll(&wake, 1, 500);
    if (const auto signal = signals.next())
      return fail(ExitCode::kStopped,
                  fmt::format("stopped on request (signal {}) while {}",
                              sigabbrev_np(signal->number), lock.error().message),
                  "continue with " + supervise::resume_command(directory));
  }
}

}  // namespace

Result<ExitCode> cmd_supervise(const SuperviseArguments& arguments) {
  // It was written on another machine, maybe a moment ago.
  (void)seen_within(kSeenWithin, arguments.run,
                    [&] { return is_regular_file(run::Directory{arguments.run}.plan()); });
  PTRAIN_TRY(const run::Directory directory, supervise::open_run(arguments.run));
  supervise::StopSignals signals;
  const std::string array = own_array(directory);
  PTRAIN_TRY(const auto lock, lock_in_turn(directory, array, signals));
  auto code = train(directory, lock, signals);
  if (!code) leave_verdict(directory, code.error());
  end_array(array, code ? *code : code.error().code);
  return code;
}

}  // namespace ptrain::cli
