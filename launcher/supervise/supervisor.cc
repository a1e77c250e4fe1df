#include "launcher/supervise/supervisor.h"

#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/error_line.h"
#include "core/recipe/shapes.h"
#include "launcher/base/file.h"
#include "launcher/base/plan_file.h"
#include "launcher/cluster/slurm.h"
#include "launcher/supervise/attempt.h"
#include "launcher/supervise/chronicle.h"
#include "launcher/supervise/follow_up.h"
#include "launcher/supervise/goodput.h"
#include "launcher/supervise/history.h"
#include "launcher/supervise/measurements.h"
#include "launcher/supervise/narrate.h"
#include "launcher/supervise/notify.h"
#include "launcher/supervise/policy.h"
#include "launcher/supervise/post_mortem.h"
#include "launcher/supervise/processes.h"
#include "launcher/supervise/report.h"
#include "launcher/supervise/run_folder.h"
#include "launcher/supervise/verdicts.h"

namespace ptrain::supervise {

namespace {

using Clock = std::chrono::steady_clock;
using cluster::kRunning;

class Supervisor {
 public:
  explicit Supervisor(const Setup& setup)
      : setup_(setup),
        plan_(setup.plan),
        log_(setup.directory),
        progress_(stderr, recipe::total_steps(setup.plan.recipe),
                  setup.plan.recipe.log.every_steps),
        save_times_(setup.expected_save_s),
        clock_(setup.job, setup.job_end),
        guard_(setup.guard, setup.job, setup.here) {}

  run::Verdict run();

 private:
  run::Verdict attempts();
  Status use_nodes();
  std::string state_of_job() const;
  std::vector<std::string> taken_nodes() const;
  void name_taken_nodes(run::Verdict& verdict) const;
  Status look_at_nodes();
  Status do_without(const std::vector<std::string>& silent);
  Status replace_plan(run::Plan plan);
  Result<AttemptEnd> attempt(const std::string& shape);
  Decision judge(const AttemptEnd& end);
  Status leave_post_mortem(const run::Verdict& verdict);
  std::optional<run::Verdict> prepare_restart(const Decision& decision,
                                              const run::Verdict& verdict);
  std::optional<int> signal_within(double seconds);
  // Said once: a full disk, or a run directory that is gone, takes none of several files.
  void note(const Status& written) {
    if (!written && !std::exchange(noted_, true))
      progress_.say("warning: " + error_line(written.error()));
  }
  run::Verdict finish(run::Verdict verdict);
  void tell_what_follows(run::Verdict& verdict) const;
  run::Verdict go_on_elsewhere(run::Verdict verdict);
  void exclude(const std::vector<std::string>& nodes) {
    for (const auto& node : without(nodes, history_.excluded)) history_.excluded.push_back(node);
  }
  void warn(const std::string& what) {
    progress_.say("warning: " + what);
    note(log_.write(run::EventKind::kWarning, -1, {{"message", what}}));
  }
  void say_all(const std::vector<std::string>& lines) {
    for (const auto& line : lines) progress_.say(line);
  }

  // A folder may be seen late here (see seen_within in launcher/base/file.h): ranks tell, too.
  std::int64_t newest_checkpoint() const {
    return std::max(newest_step(setup_.directory), published_);
  }
  // The shape of the next step, as far as the names of checkpoints tell. When the newest is
  // damaged the engine knows better, and asks for another shape.
  // With all steps done, someone has found the last checkpoint damaged.
  std::string next_shape() const {
    const auto name = next_shape_name(plan_, std::max(newest_checkpoint(), plan_.origin.step));
    return name.empty() ? plan_.shapes.back().name : name;
  }
  std::optional<int> max_restarts() const {
    const auto given = plan_.recipe.failure.max_restarts;
    return given || !setup_.job.empty() ? given : 0;
  }

  const Setup& setup_;
  run::Plan plan_;  // of the next attempt
  EventLog log_;
  Progress progress_;
  Measurements measurements_;
  Goodput goodput_;
  SaveTimes save_times_;
  JobClock clock_;
  Guard guard_;
  History history_;
  std::vector<std::string> nodes_;  // of the job, that may be used
  const std::string resume_ = resume_command(setup_.directory);
  FolderWatch folder_{setup_.directory};
  Clock::time_point start_ = Clock::now();
  std::int64_t published_ = -1;                          // the last that ranks told of
  std::int64_t first_checkpoint_ = newest_checkpoint();  // of this job
  int attempt_ = 0;
  int num_restarts_ = 0;
  double preflight_s_ = 0;   // that it took before the next attempt
  bool time_is_up_ = false;  // the last attempt was stopped because the job ends
  bool noted_ = false;
};

// Slurm may start a job again that it takes for lost while we still live: nothing must start beside
// it. Where Slurm does not tell, and without a job, there is nothing to stop for.
std::string Supervisor::state_of_job() const {
  if (setup_.job.empty()) return kRunning;
  const auto now = cluster::ask_job(setup_.job);
  return now && !now->state.empty() ? now->state : kRunning;
}

// The nodes that Slurm has taken from the job. Where it does not tell, they show when ranks start.
std::vector<std::string> Supervisor::taken_nodes() const {
  if (setup_.nodes.empty()) return {};
  const auto now = cluster::ask_job(setup_.job);
  return now ? cluster::taken_nodes(*now, setup_.nodes) : std::vector<std::string>{};
}

// Leaves out the nodes that failed before or are gone, and plans again where too few are left.
Status Supervisor::use_nodes() {
  if (setup_.nodes.empty()) return {};
  const auto taken = without(taken_nodes(), history_.excluded);
  if (!taken.empty()) warn(taken_from_job_text(taken) + ": left out");
  exclude(taken);
  nodes_ = usable_nodes(setup_.nodes, history_, run::num_nodes(plan_));
  if (nodes_.empty())
    return fail(ExitCode::kNodeLost, "no node of the job is left",
                "see what became of its nodes (`sinfo -N`)");
  PTRAIN_TRY(run::Plan placed, place(plan_, nodes_, setup_.replan));
  const bool is_new = placed.shapes != plan_.shapes;
  plan_ = placed;
  return is_new ? replace_plan(std::move(placed)) : Status{};
}

Status Supervisor::look_at_nodes() {
  if (!setup_.preflight) return {};
  const auto start = Clock::now();
  for (;;) {
    PTRAIN_TRY(const auto settled, setup_.preflight(plan_));
    preflight_s_ = std::chrono::duration<double>(Clock::now() - start).count();
    for (const auto& warning : settled.warnings) warn(warning);
    if (settled.silent.empty()) return {};
    PTRAIN_CHECK(do_without(settled.silent));
  }
}

// As when nodes are lost later on.
Status Supervisor::do_without(const std::vector<std::string>& silent) {
  if (max_restarts() == 0) return silent_nodes_error(silent, "");
  if (silent.size() > 1 && silent.size() + 1 >= nodes_of(plan_).size())
    return silent_nodes_error(
        silent,
        "these are all but one, and the network of the node where ptrain runs may "
        "be cut");
  exclude(silent);
  if (const auto placed = use_nodes(); !placed)
    return silent_nodes_error(silent, "what is left is not enough: " + placed.error().message);
  warn(left_out_text(silent));
  note(log_.write(run::EventKind::kDecision, -1,
                  to_fields(start_without_decision(silent), setup_.job)));
  return {};
}

Status Supervisor::replace_plan(run::Plan plan) {
  PTRAIN_CHECK(write_plan(setup_.directory.plan(), plan));
  const std::string layouts = layouts_text(plan);
  progress_.say(fmt::format("planned again for {}: {}", fmt::join(nodes_, ", "), layouts));
  note(log_.write(run::EventKind::kPlanChosen, -1, {{"layouts", layouts}, {"nodes", nodes_}}));
  return {};
}

Result<AttemptEnd> Supervisor::attempt(const std::string& shape) {
  const auto& shapes = plan_.shapes;
  const auto found = std::ranges::find(shapes, shape, &run::ShapePlan::name);
  if (found == shapes.end())
    return fail(ExitCode::kUsage, fmt::format("the plan has no shape '{}'", shape));
  if (const Status guarded = guard_.ensure(nodes_); !guarded)
    progress_.say("warning: nobody guards the job: " + guarded.error().message);
  attempt_ = next_attempt(setup_.directory);
  log_.set_attempt(attempt_);
  PTRAIN_TRY(AttemptSetup prepared, prepare_attempt(setup_, folder_, plan_, *found, attempt_));
  if (!setup_.job.empty()) prepared.clock = &clock_;
  prepared.apart = guard_.pid();
  note(log_.write(run::EventKind::kAttemptStarted, -1,
                  {{"shape", shape},
                   {"num_ranks", prepared.launch.num_ranks},
                   {"nodes", nodes_of(plan_)},
                   {"job", setup_.job},
                   {"preflight_s", std::exchange(preflight_s_, 0)}}));
  return run_attempt(prepared, {log_, progress_, measurements_, goodput_, save_times_},
                     setup_.signals);
}

// Slurm may take a node from the job between two attempts, and then tells only that there are too
// few.
void Supervisor::name_taken_nodes(run::Verdict& verdict) const {
  if (verdict.code != ExitCode::kEnvironment || setup_.nodes.empty()) return;
  auto taken = without(nodes_of(plan_), without(setup_.nodes, taken_nodes()));
  if (!taken.empty()) verdict = taken_nodes_verdict(std::move(verdict), std::move(taken));
}

Decision Supervisor::judge(const AttemptEnd& end) {
  Past past{end.verdict,
            end.next_shape,
            history_.failures,
            num_restarts_,
            max_restarts(),
            newest_checkpoint(),
            !folder_.is_there(),
            static_cast<int>(std::max<std::size_t>(1, nodes_.size())),
            resume_};
  const Failure failure{setup_.job,       end.verdict.code, end.verdict.rank,
                        end.verdict.step, past.checkpoint,  end.verdict.nodes};
  if (is_failure(failure.code)) history_.failures.push_back(failure);
  past.failures = history_.failures;
  const Decision decision = decide(past);
  // A full disk must not keep the run from its verdict.
  note(log_.write(run::EventKind::kAttemptEnded, -1, to_fields(end.verdict, failure)));
  note(log_.write(run::EventKind::kDecision, -1, to_fields(decision, setup_.job)));
  if (is_failure(failure.code)) note(leave_post_mortem(end.verdict));
  return decision;
}

Status Supervisor::leave_post_mortem(const run::Verdict& verdict) {
  if (!folder_.is_there()) return {};
  return publish_file(setup_.directory.attempt_folder(attempt_) + "/post-mortem.txt",
                      post_mortem(setup_.directory, plan_, verdict, slurm_facts(setup_.job)));
}

std::optional<int> Supervisor::signal_within(double seconds) {
  pollfd entry{setup_.signals.file(), POLLIN, 0};
  ::poll(&entry, 1, static_cast<int>(seconds * 1000));
  const auto signal = setup_.signals.next();
  return signal ? std::optional(signal->number) : std::nullopt;
}

// A verdict: there will be no restart after all.
std::optional<run::Verdict> Supervisor::prepare_restart(const Decision& decision,
                                                        const run::Verdict& verdict) {
  ++num_restarts_;
  progress_.say(verdict_line(verdict));
  exclude(decision.exclude);
  if (const auto signal = signal_within(decision.wait_s))
    return stopped_between_verdict(verdict, *signal, resume_);
  if (const auto state = state_of_job(); state != kRunning)
    return ended_by_slurm_verdict(verdict, setup_.job, state, resume_);
  const Status placed = use_nodes();
  if (placed) return std::nullopt;
  return short_of_nodes_verdict(verdict, history_.excluded, placed.error(), resume_);
}

run::Verdict Supervisor::finish(run::Verdict verdict) {
  progress_.finish();
  verdict.held_s = std::chrono::duration<double>(Clock::now() - start_).count();
  // After a failure the steps behind the newest checkpoint are lost.
  verdict.trained_s =
      goodput_.trained_s(is_failure(verdict.code) ? newest_checkpoint() : verdict.step);
  // Said even when a full disk takes no more files: it may be all that is left of the verdict.
  note(log_.write(verdict));
  note(log_.write(run::EventKind::kRunEnded, -1,
                  {{"code", static_cast<int>(verdict.code)}, {"reason", verdict.reason}}));
  say_all(measurements_.beside(plan_));
  say_all(failure_lines(setup_.directory, verdict));
  if (const auto text = goodput_text(verdict.trained_s, verdict.held_s);
      is_failure(verdict.code) && !text.empty())
    progress_.say(text);
  progress_.say("run directory: " + setup_.directory.root);
  progress_.say(verdict_line(verdict));
  note(notify(plan_.recipe.failure.notify, setup_.directory, verdict));
  return go_on_elsewhere(std::move(verdict));
}

// Last of all, since Slurm may end us for it.
run::Verdict Supervisor::go_on_elsewhere(run::Verdict verdict) {
  if (!time_is_up_ || verdict.code != ExitCode::kPreempted) return verdict;
  const auto done = follow_up(plan_.recipe.failure.time_limit, setup_.job, setup_.directory);
  if (done) return verdict;
  verdict.next = error_line(done.error());
  note(log_.write(verdict));
  progress_.say(verdict_line(verdict));
  return verdict;
}

// Jobs that save nothing must not follow each other for ever.
void Supervisor::tell_what_follows(run::Verdict& verdict) const {
  const auto how = plan_.recipe.failure.time_limit;
  const bool has_next = !setup_.next_task.empty() && is_end_of_job(verdict.code);
  if (has_next) verdict.next = next_task_text(setup_.next_task);
  if (!time_is_up_ || (how == recipe::AtTimeLimit::kStop && !has_next)) return;
  if (!has_next) verdict.next = follow_up_text(how, setup_.job);
  if (newest_checkpoint() > first_checkpoint_) return;
  verdict = none_follows_verdict(std::move(verdict));
}

run::Verdict Supervisor::attempts() {
  if (const auto placed = use_nodes(); !placed)
    return not_started_verdict(placed.error(), 0, resume_);
  if (const auto looked = look_at_nodes(); !looked)
    return not_started_verdict(looked.error(), 0, resume_);
  say_all(start_lines(plan_, setup_.directory, setup_.by_hand));
  std::string shape = next_shape();
  for (;;) {
    auto ended = attempt(shape);
    if (!ended) return not_started_verdict(ended.error(), attempt_, resume_);
    name_taken_nodes(ended->verdict);
    const AttemptEnd& end = *ended;
    published_ = std::max(published_, end.published);
    const Decision decision = judge(end);
    run::Verdict verdict = end.verdict;
    if (verdict.step == 0)  // it ended before its first step
      verdict.step = std::max({verdict.step, newest_checkpoint(), plan_.origin.step});
    verdict.code = decision.code;
    verdict.next = decision.next;
    time_is_up_ = end.time_is_up && verdict.code == ExitCode::kPreempted;
    tell_what_follows(verdict);
    if (decision.action == AfterAttempt::kFinish) return verdict;
    if (decision.action == AfterAttempt::kRestart) {
      if (auto last = prepare_restart(decision, verdict)) {
        tell_what_follows(*last);
        return *last;
      }
      shape = next_shape();
    } else {
      shape = end.next_shape;
    }
  }
}

run::Verdict Supervisor::run() {
  adopt_orphans();
  ::signal(SIGPIPE, SIG_IGN);  // a reader of our output that ends must not end the run
  if (const auto events = read_events(setup_.directory.events()))
    history_ = history_of(*events, setup_.job);
  if (!setup_.job.empty()) setup_.signals.heed_warnings();
  if (!setup_.job.empty()) num_restarts_ = num_failures_of(history_, setup_.job);
  return finish(attempts());
}

}  // namespace

run::Verdict supervise(const Setup& setup) { return Supervisor(setup).run(); }

}  // namespace ptrain::supervise
