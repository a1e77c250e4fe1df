#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/follow_logs.h"
#include "cli/output.h"
#include "cli/run_status.h"
#include "core/program/memory.h"
#include "core/run/plan.h"
#include "launcher/base/file.h"
#include "launcher/base/plan_file.h"
#include "launcher/submit/commands.h"
#include "launcher/submit/job_file.h"
#include "launcher/submit/job_state.h"
#include "launcher/supervise/chronicle.h"
#include "launcher/supervise/event_log.h"
#include "launcher/supervise/follow_up.h"
#include "launcher/supervise/goodput.h"
#include "launcher/supervise/narrate.h"
#include "launcher/supervise/policy.h"
#include "launcher/supervise/report.h"
#include "launcher/supervise/run_folder.h"
#include "launcher/supervise/signals.h"

namespace ptrain::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostLog = std::size_t{1} << 30, kMostMetrics = kMostLog;

// Every folder below `folder`, at most two deep (NAME/TIME), that is a run.
Result<std::vector<std::string>> runs_in(const std::string& folder) {
  std::vector<std::string> runs;
  std::error_code error, ignored;  // a folder in it that cannot be read holds none
  const fs::directory_iterator names(folder, error);
  if (error == std::errc::permission_denied)
    return fail(ExitCode::kUsage, fmt::format("cannot look into {}: {}", folder, error.message()),
                "list runs as the user who started them");
  if (error)
    return fail(ExitCode::kUsage, fmt::format("there is no folder {}", folder),
                "name the folder that holds runs; `ptrain run` makes runs/ where it is called");
  for (const auto& name : names) {
    if (supervise::open_run(name.path())) runs.push_back(name.path());
    if (!name.is_directory(ignored)) continue;
    for (const auto& time : fs::directory_iterator(name.path(), ignored))
      if (supervise::open_run(time.path())) runs.push_back(time.path());
  }
  std::ranges::sort(runs);
  return runs;
}

Result<std::vector<std::string>> logs_of(const run::Directory& directory,
                                         const InspectArguments& arguments) {
  const int last = supervise::next_attempt(directory) - 1;
  const int attempt = arguments.attempt < 0 ? last : arguments.attempt;
  std::vector<std::string> paths;
  if (arguments.rank >= 0) {
    paths.push_back(directory.rank_log(attempt, arguments.rank));
  } else {
    const auto job = submit::read_job(directory);
    if (job && is_regular_file(directory.job_output(name_of(*job))))
      paths.push_back(directory.job_output(name_of(*job)));
    for (int rank = 0; is_regular_file(directory.rank_log(attempt, rank)); ++rank)
      paths.push_back(directory.rank_log(attempt, rank));
  }
  if (!paths.empty() && is_regular_file(paths.front())) return paths;
  return fail(ExitCode::kUsage, fmt::format("no such log in {}", directory.attempt_folder(attempt)),
              "`ptrain status` says which attempts there are");
}

// What a shape runs on, what that was predicted to cost, and what ruled out the others.
std::string explanation_of(const run::ShapePlan& shape) {
  const run::Prediction& predicted = shape.predicted;
  std::string text = fmt::format(
      "{}: {} ({})\n  predicted: {} a step ({} to {}), {} tokens/s, MFU {:.1f} %, {} of it waits "
      "for communication\n",
      shape.name, mesh::to_string(shape.layout), supervise::in_words(shape.layout),
      supervise::short_duration(predicted.step_s), supervise::short_duration(predicted.low_s),
      supervise::short_duration(predicted.high_s), supervise::short_number(predicted.tokens_per_s),
      100 * predicted.mfu, supervise::short_duration(predicted.exposed_s));
  for (const auto& one : predicted.classes) {
    const auto bytes = static_cast<double>(program::total_bytes(one.bytes));
    text += fmt::format("  memory: {} on {}\n", supervise::short_bytes(bytes),
                        one.count == 1 ? "one rank" : fmt::format("each of {} ranks", one.count));
  }
  for (const auto& one : shape.rejected)
    text += fmt::format("  ruled out {}: {} (nearest: {})\n", one.count, one.reason, one.nearest);
  if (shape.rejected.empty()) text += "  no other layout was ruled out: this was the fastest\n";
  return text;
}

}  // namespace

Result<ExitCode> cmd_status(const InspectArguments& arguments) {
  PTRAIN_TRY(const run::Directory directory, supervise::open_run(arguments.run));
  PTRAIN_TRY(const RunStatus status, status_of(directory));
  if (arguments.json)
    print(to_json(status).dump(1) + "\n");
  else
    print_line(to_text(status));
  return ExitCode::kDone;
}

Result<ExitCode> cmd_list(const InspectArguments& arguments) {
  PTRAIN_TRY(const auto paths, runs_in(arguments.run));
  ExitCode code = ExitCode::kDone;
  for (const auto& path : paths) {
    const auto status = supervise::open_run(path).and_then(status_of);
    if (!status) {
      report(status.error());
      code = status.error().code;
    } else if (arguments.json) {
      print(to_json(*status).dump() + "\n");
    } else {
      print_line(fmt::format("{}  {}", path, to_line(*status)));
    }
  }
  return code;
}

Result<ExitCode> cmd_logs(const InspectArguments& arguments) {
  PTRAIN_TRY(const run::Directory directory, supervise::open_run(arguments.run));
  if (arguments.follow) return follow_logs(directory, arguments.rank);
  PTRAIN_TRY(const auto paths, logs_of(directory, arguments));
  for (const auto& path : paths) {
    PTRAIN_TRY(const std::string text, read_file(path, kMostLog));
    if (paths.size() > 1) print_line("==> " + path);
    print(escaped(text));
  }
  return ExitCode::kDone;
}

Result<ExitCode> cmd_explain(const InspectArguments& arguments) {
  PTRAIN_TRY(const run::Directory directory, supervise::open_run(arguments.run));
  PTRAIN_TRY(const run::Plan plan, read_plan(directory.plan()));
  for (const auto& shape : plan.shapes) print(escaped(explanation_of(shape)));
  PTRAIN_TRY(const auto events, supervise::read_events(directory.events()));
  for (const auto& line : supervise::chronicle(events)) print_line(line);
  if (!is_regular_file(directory.verdict())) return ExitCode::kDone;
  PTRAIN_TRY(const run::Verdict verdict, supervise::read_verdict(directory.verdict()));
  print_line(supervise::verdict_line(verdict));
  const auto metrics = read_file(directory.metrics(), kMostMetrics);
  const auto last = supervise::is_failure(verdict.code)
                        ? supervise::newest_step(directory)
                        : std::numeric_limits<std::int64_t>::max() - 1;
  const auto text = supervise::goodput_text(supervise::trained_s(metrics.value_or(""), last),
                                            supervise::held_s(events));
  if (!text.empty()) print_line("in all attempts: " + text);
  return ExitCode::kDone;
}

namespace {

Status signal_job(const std::string& job, bool now) {
  PTRAIN_CHECK(submit::signal_script(job, "USR2"));
  return now ? submit::signal_script(job, "TERM") : Status{};
}

// Those tasks go first that would begin as soon as the one that runs has ended; it is signalled
// even where that fails.
Status stop_array(const std::string& array, const submit::JobState& before, bool now) {
  const Status cancelled = supervise::cancel_waiting(array);
  const submit::JobState state = submit::look_up(array);  // another may have begun meanwhile
  const bool runs = state.phase == submit::JobPhase::kRunning;
  if (runs || state.phase == submit::JobPhase::kUnknown)
    PTRAIN_CHECK(signal_job(name_of(array, runs ? state : before), now));
  return cancelled;
}

std::string stopping_text(bool now) {
  return now ? "stopping now" : "stopping after the step, with a checkpoint of what was trained";
}

// A run in a Slurm job: its supervisor may be on any node, and Slurm reaches it. What was done;
// empty: there is no job that could be stopped.
Result<std::string> stop_job(const run::Directory& directory, bool now) {
  if (!submit::has_job(directory)) return "";
  PTRAIN_TRY(const submit::JobFile file, submit::read_job(directory));
  const submit::JobState state = submit::look_up(file.job);
  if (state.phase == submit::JobPhase::kWaiting) {
    PTRAIN_CHECK(submit::cancel(file.job));
    return fmt::format("{} {} had not begun, and was taken out of the queue",
                       file.task.empty() ? "job" : "what was left of job", file.job);
  }
  if (state.phase != submit::JobPhase::kRunning) return "";
  PTRAIN_CHECK(file.num_tasks > 0 ? stop_array(file.job, state, now)
                                  : signal_job(name_of(file.job, state), now));
  return stopping_text(now);
}

Status stop_here(const run::Directory& directory, bool now) {
  const int pid = supervise::supervisor_of(directory);
  if (pid == 0)
    return fail(ExitCode::kUsage, fmt::format("{} is not running", directory.root),
                "`ptrain status` says how it ended");
  if (now ? supervise::stop_at_once(pid) : ::kill(pid, SIGUSR2) == 0) return {};
  return fail(ExitCode::kEnvironment, fmt::format("cannot signal the supervisor (pid {})", pid),
              "stop it as the user who started it, on the machine where it runs");
}

}  // namespace

Result<ExitCode> cmd_stop(const InspectArguments& arguments) {
  PTRAIN_TRY(const run::Directory directory, supervise::open_run(arguments.run));
  PTRAIN_TRY(std::string done, stop_job(directory, arguments.now));
  if (done.empty()) {
    PTRAIN_CHECK(stop_here(directory, arguments.now));
    done = stopping_text(arguments.now);
  }
  say("ptrain: " + done);
  return ExitCode::kDone;
}

}  // namespace ptrain::cli
