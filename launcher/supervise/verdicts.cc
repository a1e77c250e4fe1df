#include "launcher/supervise/verdicts.h"

#include <fmt/ranges.h>
#include <signal.h>
#include <string.h>

#include <utility>

namespace ptrain::supervise {

namespace {

std::string in_a_row(const Nodes& nodes) { return fmt::format("{}", fmt::join(nodes, ", ")); }

// "node1: does not answer", "node1, node2: do not answer"
std::string without_answer(const Nodes& silent) {
  return fmt::format("{}: {} not answer", in_a_row(silent), silent.size() == 1 ? "does" : "do");
}

}  // namespace

std::string taken_from_job_text(const Nodes& nodes) {
  return fmt::format("Slurm has taken {} from the job", in_a_row(nodes));
}

std::string left_out_text(const Nodes& silent) {
  return fmt::format("{}, and {} left out", without_answer(silent),
                     silent.size() == 1 ? "is" : "are");
}

Decision start_without_decision(const Nodes& silent) {
  return {AfterAttempt::kRestart, ExitCode::kNodeLost,
          "the first attempt starts without " + in_a_row(silent), 0, silent};
}

Status silent_nodes_error(const Nodes& silent, const std::string& why) {
  return fail(
      ExitCode::kEnvironment,
      fmt::format("preflight: {}{}{}", without_answer(silent), why.empty() ? "" : "; ", why),
      fmt::format("leave {} out: --exclude={}; `ptrain doctor` looks again", in_a_row(silent),
                  fmt::join(silent, ",")));
}

run::Verdict not_started_verdict(const Error& error, int attempt, const std::string& resume) {
  run::Verdict verdict;
  verdict.code = error.code;
  verdict.reason = error.message;
  const std::string go_on = "continue with " + resume;
  verdict.next = error.hint.empty() ? go_on : error.hint + "; " + go_on;
  verdict.attempt = attempt;
  return verdict;
}

run::Verdict taken_nodes_verdict(run::Verdict verdict, Nodes taken) {
  verdict.code = ExitCode::kNodeLost;
  verdict.reason = taken_from_job_text(taken);
  verdict.nodes = std::move(taken);
  return verdict;
}

run::Verdict stopped_between_verdict(run::Verdict verdict, int signal, const std::string& resume) {
  verdict.code = ExitCode::kStopped;
  verdict.reason = fmt::format("stopped on request (signal {}) before a restart; before that: {}",
                               sigabbrev_np(signal), verdict.reason);
  verdict.next = "continue with " + resume;
  return verdict;
}

run::Verdict ended_by_slurm_verdict(run::Verdict verdict, const std::string& job,
                                    const std::string& state, const std::string& resume) {
  verdict.code = static_cast<ExitCode>(128 + SIGTERM);
  verdict.reason =
      fmt::format("Slurm has ended the job ({}); before that: {}", state, verdict.reason);
  verdict.next =
      fmt::format("see `squeue -j {}`: where Slurm does not start the job again, continue with {}",
                  job, resume);
  return verdict;
}

run::Verdict short_of_nodes_verdict(run::Verdict verdict, const Nodes& excluded, const Error& error,
                                    const std::string& resume) {
  verdict.reason +=
      fmt::format("; the run cannot go on without {}: {}", in_a_row(excluded), error.message);
  verdict.next = fmt::format("continue with {} where there are enough nodes", resume);
  return verdict;
}

run::Verdict none_follows_verdict(run::Verdict verdict) {
  verdict.code = ExitCode::kNoProgress;
  verdict.next = "this job has saved no step, so none follows: give jobs more time (--time)";
  return verdict;
}

}  // namespace ptrain::supervise
