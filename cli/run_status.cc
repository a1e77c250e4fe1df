#include "cli/run_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/run/plan.h"
#include "launcher/base/file.h"
#include "launcher/base/plan_file.h"
#include "launcher/parity/parity.h"
#include "launcher/resume/verify.h"
#include "launcher/submit/follow.h"
#include "launcher/submit/job_file.h"
#include "launcher/submit/job_state.h"
#include "launcher/supervise/event_log.h"
#include "launcher/supervise/rank_board.h"
#include "launcher/supervise/report.h"
#include "launcher/supervise/run_folder.h"

namespace ptrain::cli {

namespace {

std::string state_of(ExitCode code) {
  if (code == ExitCode::kDone) return "finished";
  if (code == ExitCode::kStopped || code == ExitCode::kPreempted) return "stopped";
  return static_cast<int>(code) > 128 ? "stopped" : "failed";
}

// The step of the last whole line of metrics.jsonl; 0 where there is none.
std::int64_t last_step(const run::Directory& directory) {
  const auto lines = supervise::tail_of(directory.metrics(), 2);
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const auto json = nlohmann::json::parse(*line, nullptr, false);
    if (json.is_object() && json.contains("step") && json["step"].is_number_integer())
      return json["step"].get<std::int64_t>();
  }
  return 0;
}

// What Slurm says of the run's job. The state stays "interrupted" where the verdict tells it.
Status add_job(const run::Directory& directory, RunStatus& status) {
  PTRAIN_TRY(const submit::JobFile file, submit::read_job(directory));
  const submit::JobState job = submit::look_up(file.job);
  status.job = submit::name_of(file.job, job);
  status.job_state = submit::in_words(job);
  const bool has_verdict = submit::has_verdict(directory, file);
  const bool ends = job.word == "COMPLETING" && has_verdict;
  if (job.phase == submit::JobPhase::kWaiting) status.state = "queued";
  if (job.phase == submit::JobPhase::kRunning && !ends) status.state = "running";
  if (!submit::is_over(job) || status.state == "running" || has_verdict) return {};
  const auto ending =
      submit::ending_of(status.job, job, is_regular_file(directory.job_output(status.job)),
                        supervise::resume_command(directory));
  status.state = state_of(ending.code);
  status.code = static_cast<int>(ending.code);
  status.reason = ending.reason;
  status.next = ending.next;
  return {};
}

}  // namespace

Result<RunStatus> status_of(const run::Directory& directory) {
  PTRAIN_TRY(const run::Plan plan, read_plan(directory.plan()));
  RunStatus status;
  status.directory = directory.root;
  status.parity = parity::is_parity_run(directory);
  status.attempt = supervise::next_attempt(directory) - 1;
  status.step = last_step(directory);
  for (const auto& shape : plan.recipe.shapes) status.num_steps += shape.steps;
  const auto steps = supervise::checkpoint_steps(directory);
  if (!steps.empty()) status.checkpoint = steps.back();
  status.state = supervise::supervisor_of(directory) != 0 ? "running" : "interrupted";
  if (submit::has_job(directory)) PTRAIN_CHECK(add_job(directory, status));
  const bool running = status.state == "running";
  if (!steps.empty() && !running) {  // while it runs, what was there may be replaced meanwhile
    const auto whole = resume::verify(directory.checkpoint(steps.back()), resume::Look::kSizes);
    if (!whole) status.checkpoint_fault = whole.error().message;
  }
  if (running) status.ranks = supervise::read_rank_board(directory.rank_board(status.attempt));
  if (status.state != "interrupted" || !is_regular_file(directory.verdict())) return status;
  PTRAIN_TRY(const run::Verdict verdict, supervise::read_verdict(directory.verdict()));
  if (verdict.attempt != status.attempt) return status;  // of an earlier attempt
  status.state = state_of(verdict.code);
  status.code = static_cast<int>(verdict.code);
  status.step = std::max(status.step, verdict.step);
  status.reason = verdict.reason;
  status.next = verdict.next;
  return status;
}

namespace {

std::string progress_text(const RunStatus& status) {
  if (status.parity)
    return fmt::format("attempt: {}\na parity run: nothing is trained", status.attempt);
  return fmt::format("attempt: {}\nstep: {}/{}\ncheckpoint: {}", status.attempt, status.step,
                     status.num_steps,
                     status.checkpoint < 0 ? "none" : std::to_string(status.checkpoint));
}

}  // namespace

std::string to_line(const RunStatus& status) {
  const std::string progress =
      status.parity ? "parity" : fmt::format("step {}/{}", status.step, status.num_steps);
  return fmt::format("{}  {}{}", status.state, progress,
                     status.job.empty() ? "" : "  job " + status.job);
}

std::string to_text(const RunStatus& status) {
  std::string text = fmt::format("{}\nstate: {}", status.directory, status.state);
  if (!status.job.empty()) text += fmt::format("\njob: {} {}", status.job, status.job_state);
  text += "\n" + progress_text(status);
  if (status.code >= 0)
    text += fmt::format("\nexit code: {}\nreason: {}", status.code, status.reason);
  if (!status.next.empty()) text += "\nnext: " + status.next;
  if (!status.checkpoint_fault.empty())
    text +=
        fmt::format("\nthe newest checkpoint is damaged: {}\n{} goes on from the newest good one",
                    status.checkpoint_fault, supervise::resume_command({status.directory}));
  for (const auto& rank : status.ranks) text += fmt::format("\n{}", supervise::rank_line(rank));
  return text;
}

nlohmann::json to_json(const RunStatus& status) {
  return {{"directory", status.directory},
          {"state", status.state},
          {"job", status.job},
          {"job_state", status.job_state},
          {"parity", status.parity},
          {"attempt", status.attempt},
          {"step", status.step},
          {"num_steps", status.num_steps},
          {"checkpoint", status.checkpoint},
          {"code", status.code},
          {"reason", status.reason},
          {"next", status.next},
          {"ranks", status.ranks},
          {"checkpoint_fault", status.checkpoint_fault}};
}

}  // namespace ptrain::cli
