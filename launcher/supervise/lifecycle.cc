#include "launcher/supervise/lifecycle.h"

#include <fmt/ranges.h>
#include <signal.h>
#include <string.h>

#include <algorithm>

#include "launcher/supervise/policy.h"

namespace ptrain::supervise {

namespace {

using run::EventKind;

// mpirun ends the other ranks within 1.5 s of a death and then says which rank died and how.
constexpr double kLauncherGrace = 2;
// And it ends by itself, clearing its files away, in about as long after its ranks are killed.
constexpr double kKillGrace = 1.5;
// srun kills what it reaches in a tenth of that, and would wait for the lost node until Slurm, too,
// takes it for lost.
constexpr double kLostNodeGrace = 0.5;
// Ranks say something every second, so that connections to machines that were lost together break
// within a second of each other.
constexpr double kOtherNodes = 1;
// Of steps, the latest, from which a hang's limit follows: a run of a million must not sort them
// all.
constexpr std::ptrdiff_t kStepTimes = 512;
// For ranks to write where each of their threads is.
constexpr double kStacks = 1;

// A rank's exit code means something only when it is one of ours.
ExitCode code_of_exit(int code) {
  const auto known = run::exit_code_from(code);
  return known && is_failure(*known) && code < 128 ? *known : ExitCode::kRankError;
}

// How long something is waited for after a failure, before all are killed: what the launcher has to
// say, other nodes that are lost too, stacks in the logs.
double grace_after(ExitCode code) {
  switch (code) {
    case ExitCode::kNodeLost:
      return kOtherNodes;
    case ExitCode::kHang:
      return kStacks;
    default:
      return kLauncherGrace;
  }
}

// How a rank ends that is killed, or whose peers are.
bool follows_from_signals(ExitCode code) {
  return code == ExitCode::kRankError || code == ExitCode::kRankSignal;
}

}  // namespace

Lifecycle::Lifecycle(int attempt, std::vector<std::string> nodes, double hang_timeout_s, double now)
    : ranks_(nodes.size()),
      nodes_(std::move(nodes)),
      stragglers_(nodes_),
      hang_timeout_s_(hang_timeout_s),
      now_(now),
      progress_at_(now) {
  verdict_.attempt = attempt;
  for (auto& rank : ranks_) rank.heard_at = now;
}

std::vector<Output> Lifecycle::on(double now, const Input& input) {
  now_ = now;
  if (!ended_) std::visit([this](const auto& one) { handle(one); }, input);
  return std::exchange(outputs_, {});
}

void Lifecycle::handle(const RankSaid& said) {
  if (said.rank < 0 || said.rank >= static_cast<int>(ranks_.size())) return;
  state(said.rank).heard_at = now_;
  std::visit([&](const auto& message) { hear(said.rank, message); }, said.message);
}

void Lifecycle::hear(int rank, const run::Hello& hello) {
  state(rank).ready = true;
  progress_at_ = now_;
  if (killed_) kill(false);  // it was not there yet when the others were
  outputs_.emplace_back(Record{EventKind::kRankReady,
                               rank,
                               {{"pid", hello.pid}, {"host", hello.host}, {"cpus", hello.cpus}}});
}

void Lifecycle::hear(int rank, const run::Heartbeat& beat) {
  LastHeard& known = state(rank);
  if (beat.step != known.step || beat.phase != known.phase || beat.collective != known.collective)
    progress_at_ = now_;
  trains_ = trains_ || beat.phase != "starting";
  known.step = std::max(known.step, beat.step);
  known.phase = beat.phase;
  known.collective = beat.collective;
  known.waiting = beat.waiting;
  known.resident_bytes = beat.resident_bytes;
  stragglers_.hear(rank, beat);
  if (const auto news = rank == 0 ? stragglers_.news() : std::nullopt)
    outputs_.emplace_back(Record{EventKind::kWarning, -1, {{"message", *news}}});
}

void Lifecycle::hear(int rank, const run::StepDone& done) {
  progress_at_ = now_;
  trains_ = true;
  state(rank).step = done.step;
  verdict_.step = done.step;
  step_times_.push_back(done.step_s);
  if (std::ssize(step_times_) > 2 * kStepTimes)
    step_times_.erase(step_times_.begin(), step_times_.end() - kStepTimes);
}

void Lifecycle::hear(int rank, const run::EventMessage& event) {
  progress_at_ = now_;
  trains_ = trains_ || event.kind == EventKind::kShapeStarted;
  outputs_.emplace_back(Record{event.kind, rank, event.fields});
}

void Lifecycle::hear(int rank, const run::Goodbye& goodbye) {
  state(rank).said_goodbye = true;
  progress_at_ = now_;
  if (is_failure(goodbye.code)) return fail({goodbye.code, rank, 0, goodbye.message, true});
  if (worst_.code == ExitCode::kDone) worst_ = goodbye;
  if (!goodbye.next_shape.empty()) next_shape_ = goodbye.next_shape;
}

// Only the supervisor sends these.
void Lifecycle::hear(int, const run::Stop&) {}
void Lifecycle::hear(int, const run::ShowStacks&) {}

void Lifecycle::handle(const RankGone& gone) {
  if (gone.rank < 0 || gone.rank >= static_cast<int>(ranks_.size())) return;
  state(gone.rank).gone = true;
  if (state(gone.rank).said_goodbye) return;
  if (gone.unreachable)
    lose(nodes_[static_cast<std::size_t>(gone.rank)]);
  else
    fail({ExitCode::kRankError, gone.rank, 0, "ended without a word", false});
}

// What peers of a lost node complained of follows from its loss.
void Lifecycle::lose(const std::string& node) {
  if (std::ranges::find(lost_nodes_, node) != lost_nodes_.end()) return;
  if (killed_ ||
      (failed_ && failure_.code != ExitCode::kRankError && failure_.code != ExitCode::kNodeLost))
    return;
  lost_nodes_.push_back(node);
  const bool one = lost_nodes_.size() == 1;
  if (one || !failed_) failed_at_ = now_;
  failed_ = true;
  failure_ = {ExitCode::kNodeLost, -1, 0,
              fmt::format("the node{} {} {} not answer any more", one ? "" : "s",
                          fmt::join(lost_nodes_, ", "), one ? "does" : "do"),
              true};
}

void Lifecycle::handle(const StopAsked& asked) {
  slurm_ends_ = slurm_ends_ || (asked.preempted && asked.signal == SIGTERM);
  if (slurm_ends_ && failed_ && follows_from_signals(failure_.code)) return cut_short();
  if (asked.preempted && num_stops_ > 0 && stop_.preempted) return;  // Slurm may repeat itself
  if (num_stops_ == 0) stop_ = asked;
  num_stops_ += asked.at_once ? 2 : 1;
  // Ranks that still start, or read data for minutes, have done nothing that could be saved.
  const bool now = num_stops_ > 1 || !trains_;
  outputs_.emplace_back(
      Record{EventKind::kStopRequested, -1, {{"reason", asked.reason}, {"now", now}}});
  stop_.signal = asked.signal;
  stop_.reason = asked.reason;
  progress_at_ = now_;
  if (now)
    kill(false);
  else
    outputs_.emplace_back(SendStop{-1, {true, asked.reason}});
}

void Lifecycle::handle(const FolderLost& lost) {
  if (killed_) return;
  fail({ExitCode::kUnusable, -1, 0, lost.what, true});
  kill(false);
}

void Lifecycle::kill(bool launcher_too) {
  outputs_.emplace_back(KillAll{launcher_too});
  if (!killed_) killed_at_ = now_;
  killed_ = true;
}

void Lifecycle::handle(const Tick&) {
  if (killed_) {
    if (now_ - killed_at_ > (lost_nodes_.empty() ? kKillGrace : kLostNodeGrace)) kill(true);
    return;
  }
  const double grace = grace_after(failure_.code);
  if (failed_ && now_ - failed_at_ > grace) kill(false);
  const double limit = hang_limit(hang_timeout_s_, step_times_, ranks_);
  if (failed_ || now_ - progress_at_ <= limit) return;
  const int rank = suspect(ranks_, now_);
  const std::string what = describe_hang(ranks_, rank, now_ - progress_at_);
  outputs_.emplace_back(Record{EventKind::kHangSuspected, rank, {{"what", what}}});
  outputs_.emplace_back(AskStacks{});
  fail({ExitCode::kHang, rank, 0, what, true});
}

// Only the first failure counts: the others follow from it. The launcher may still name its signal.
void Lifecycle::fail(Failure failure) {
  if (failed_ || killed_) return;
  if (slurm_ends_ && follows_from_signals(failure.code)) return cut_short();
  failed_ = true;
  failed_at_ = now_;
  failure_ = std::move(failure);
}

// Slurm killed ranks that were to save: no fault of theirs.
void Lifecycle::cut_short() {
  failed_ = false;
  cut_short_ = true;
  kill(false);
}

void Lifecycle::handle(const LauncherEnded& end) {
  settle(end);
  if (failed_ && failure_.rank >= 0)
    outputs_.emplace_back(Record{EventKind::kRankLost,
                                 failure_.rank,
                                 {{"signal", failure_.signal}, {"what", failure_.what}}});
  judge();
  ended_ = true;
}

// What a rank said of itself stands; a rank that fell silent, or complained of another, may have
// died of what the launcher saw. Once we kill, its report counts only for the rank that was gone
// before.
bool Lifecycle::may_be_replaced_by(int rank) const {
  if (failure_.code != ExitCode::kRankError) return false;
  if (failure_.told) return rank != failure_.rank && !killed_;
  return rank == failure_.rank || !killed_;
}

// Joins what was heard with what the launcher reports. A rank that was killed by a signal before we
// killed anything is the cause, even when a peer was quicker to complain about it.
void Lifecycle::settle(const LauncherEnded& end) {
  const auto& report = end.report;
  if (killed_ && !failed_) return;
  // Whoever said how it ends is believed; only a signal can still follow, and matters.
  const bool all_parted = std::ranges::all_of(ranks_, &LastHeard::said_goodbye);
  if (all_parted && !failed_ && report.signal == 0 && end.status.signal == 0) return;
  if (!report.lost_nodes.empty() && lost_nodes_.empty()) {  // Slurm knew it before us
    lost_nodes_ = report.lost_nodes;
    const bool one = lost_nodes_.size() == 1;
    failure_ = {ExitCode::kNodeLost, -1, 0,
                fmt::format("the node{} {} {} lost ({})", one ? "" : "s",
                            fmt::join(lost_nodes_, ", "), one ? "is" : "are", report.what),
                true};
    failed_ = true;
  }
  if (!lost_nodes_.empty()) return;
  const bool may_replace = !failed_ || may_be_replaced_by(report.rank);
  if (report.signal != 0 && may_replace) {
    const bool memory = report.signal == SIGKILL && !end.out_of_memory.empty();
    failure_ = {memory ? ExitCode::kOutOfMemory : ExitCode::kRankSignal, report.rank, report.signal,
                fmt::format("killed by signal {} ({})", report.signal, strsignal(report.signal)),
                false};
    if (memory) failure_.what += ", and the kernel killed for want of memory " + end.out_of_memory;
    failed_ = true;
  } else if (report.code != 0 && may_replace && !failure_.told) {
    failure_ = {code_of_exit(report.code), report.rank, 0,
                report.what.empty() ? fmt::format("exited with code {}", report.code) : report.what,
                false};
    failed_ = true;
  } else if (!failed_ && (end.status.signal != 0 || end.status.code != 0)) {
    failure_ = {end.status.signal != 0 ? ExitCode::kRankSignal : ExitCode::kEnvironment, -1,
                end.status.signal, "", false};
    failure_.what = end.status.signal != 0
                        ? fmt::format("the launcher was killed by signal {}", end.status.signal)
                        : fmt::format("the launcher ended with code {}", end.status.code);
    failed_ = true;
  }
  const auto silent = std::ranges::find(ranks_, false, &LastHeard::said_goodbye);
  if (failed_ || silent == ranks_.end()) return;
  failed_ = true;
  failure_ = {ExitCode::kRankError, static_cast<int>(silent - ranks_.begin()), 0,
              "ended without finishing", false};
}

void Lifecycle::judge() {
  if (cut_short_) {
    verdict_.code = static_cast<ExitCode>(128 + SIGTERM);
    verdict_.reason =
        "Slurm ended the job (signal TERM), and with it the ranks, before they could save";
  } else if (killed_ && !failed_ && num_stops_ == 1) {
    verdict_.code = stop_.preempted ? ExitCode::kPreempted : ExitCode::kStopped;
    verdict_.reason = fmt::format(
        "stopped on request ({}) while it started: there was nothing new to save", stop_.reason);
  } else if (killed_ && !failed_) {
    verdict_.code = static_cast<ExitCode>(128 + stop_.signal);
    verdict_.reason = fmt::format("stopped at once ({})", stop_.reason);
  } else if (failed_) {
    verdict_.code = failure_.code;
    verdict_.rank = failure_.rank;
    verdict_.signal = failure_.signal;
    verdict_.nodes = lost_nodes_;
    if (failure_.rank >= 0) verdict_.nodes = {nodes_[static_cast<std::size_t>(failure_.rank)]};
    verdict_.reason = failure_.rank < 0 ? failure_.what
                                        : fmt::format("rank {}: {}", failure_.rank, failure_.what);
  } else if (worst_.code == ExitCode::kDone && (num_stops_ == 0 || next_shape_.empty())) {
    verdict_.reason = next_shape_.empty() ? "finished" : "finished a shape";
  } else {
    verdict_.code = stop_.preempted ? ExitCode::kPreempted : ExitCode::kStopped;
    verdict_.reason = fmt::format("stopped on request ({}), checkpoint written", stop_.reason);
  }
  if (verdict_.code != ExitCode::kDone) next_shape_.clear();
  if (verdict_.step == 0)
    for (const auto& rank : ranks_) verdict_.step = std::max(verdict_.step, rank.step);
}

}  // namespace ptrain::supervise
