#include "launcher/supervise/attempt.h"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "core/base/error_line.h"
#include "launcher/base/file.h"
#include "launcher/base/plan_file.h"
#include "launcher/start/container.h"
#include "launcher/supervise/binding.h"
#include "launcher/supervise/control_server.h"
#include "launcher/supervise/event_fields.h"
#include "launcher/supervise/memory_kills.h"
#include "launcher/supervise/narrate.h"
#include "launcher/supervise/policy.h"
#include "launcher/supervise/processes.h"
#include "launcher/supervise/rank_board.h"
#include "launcher/supervise/supervisor.h"

namespace ptrain::supervise {

namespace {

constexpr std::chrono::milliseconds kTick{100};
constexpr std::chrono::milliseconds kKillLimit{2000};
constexpr double kLook = 1;            // seconds between two looks at the run directory
constexpr double kBoardOfRank = 1e-3;  // seconds between two boards, for each rank on them
constexpr std::size_t kMostOutput = 65536;

class Attempt {
 public:
  Attempt(const AttemptSetup& setup, ControlServer server, base::Subprocess process,
          const Listeners& listeners)
      : setup_(setup),
        server_(std::move(server)),
        process_(std::move(process)),
        listeners_(listeners) {}

  Result<AttemptEnd> run(StopSignals& signals);

 private:
  void feed(const Input& input);
  bool has_news(std::chrono::milliseconds wait, int signal_file);
  void obey(const SendStop& output) { server_.send(output.rank, output.stop); }
  void obey(const AskStacks&) { server_.send(-1, run::ShowStacks{}); }
  void obey(const KillAll& output);
  void kill(int owned, Owned what);
  void obey(const Record& record);
  void end(base::ExitStatus status);
  void obey(StopSignals& signals);
  void tick();
  void flush_events();
  void look_around();
  void write_board();
  void look_at_binding(int rank, const run::Hello& hello);
  void watch_time();

  double now() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  const AttemptSetup& setup_;
  ControlServer server_;
  base::Subprocess process_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  Lifecycle lifecycle_{setup_.request.attempt, setup_.rank_nodes, setup_.hang_timeout_s, 0};
  Binding binding_{setup_.rank_nodes, setup_.launch.threads, setup_.backend.binds(setup_.launch)};
  MemoryKills memory_kills_ = MemoryKills::find();
  std::int64_t kills_before_ = memory_kills_.count();
  std::string output_;  // of the launcher program; ranks write to their own logs
  double looked_at_ = -kLook, ticked_at_ = 0, board_written_at_ = -kLook;
  bool stop_asked_ = false;
  bool time_is_up_ = false;
  std::int64_t published_ = -1;
  Listeners listeners_;
};

void Attempt::feed(const Input& input) {
  for (const auto& output : lifecycle_.on(now(), input))
    std::visit([this](const auto& one) { obey(one); }, output);
}

// It may take seconds, for which no event waits.
void Attempt::kill(int owned, Owned what) {
  flush_events();
  kill_descendants(owned, what, kKillLimit, setup_.apart);
}

void Attempt::obey(const KillAll& output) {
  if (setup_.backend.kills_on_term() && !output.launcher_too) {
    process_.signal_group(SIGTERM);
    return;
  }
  kill(process_.pid(), output.launcher_too ? Owned::kKill : Owned::kSpare);
}

void Attempt::obey(const Record& record) {
  listeners_.log.add(record.kind, record.rank, record.fields);
  if (record.kind == run::EventKind::kShapeFinished)
    listeners_.measurements.shape_finished(record.fields);
  if (record.kind == run::EventKind::kCheckpointStarted) listeners_.save_times.save_started(now());
  if (record.kind == run::EventKind::kCheckpointPublished) {
    listeners_.save_times.save_ended(now());
    published_ = std::max(published_, integer_of(record.fields, "step", -1));
  }
  for (const auto& line : event_lines(record.kind, record.fields)) listeners_.progress.say(line);
}

// News from ranks, as inputs. True when there was any.
bool Attempt::has_news(std::chrono::milliseconds wait, int signal_file) {
  const int wake[] = {signal_file, process_.end_file()};
  const auto received = server_.poll(wait, wake);
  for (const auto& [rank, what] : received) {
    if (const auto* message = std::get_if<run::ControlMessage>(&what)) {
      if (const auto* done = std::get_if<run::StepDone>(message)) {
        listeners_.progress.show(*done);
        listeners_.measurements.step(*done);
        listeners_.goodput.step(done->step, done->step_s);
        listeners_.save_times.step(done->step_s);
      }
      feed(RankSaid{rank, *message});
      if (const auto* hello = std::get_if<run::Hello>(message)) look_at_binding(rank, *hello);
    } else {
      feed(RankGone{rank, std::get<ControlServer::Gone>(what).unreachable});
    }
  }
  return !received.empty();
}

void Attempt::look_at_binding(int rank, const run::Hello& hello) {
  const auto odd = binding_.hear(rank, hello.cpus);
  if (!odd.empty()) obey(Record{run::EventKind::kWarning, rank, {{"message", odd}}});
}

// The last checkpoint has to be on the disk when Slurm ends the job.
void Attempt::watch_time() {
  if (setup_.clock == nullptr || stop_asked_) return;
  const auto left = setup_.clock->left_s();
  const double reserve = listeners_.save_times.reserve_s();
  if (!left || *left > reserve) return;
  stop_asked_ = time_is_up_ = true;
  feed(
      StopAsked{fmt::format("the job's time is up in {:.0f} s; the last checkpoint may take {:.0f}",
                            *left, reserve),
                0, true});
}

void Attempt::look_around() {
  if (now() - looked_at_ < kLook) return;
  looked_at_ = now();
  watch_time();
  if (!setup_.folder.is_there())
    feed(FolderLost{"the run directory " + setup_.directory.root +
                    " was removed or moved while the run went on: nothing more could be saved"});
  if (now() - board_written_at_ >= kBoardOfRank * setup_.launch.num_ranks) write_board();
}

void Attempt::write_board() {
  board_written_at_ = now();
  // One that cannot be written, as on a full disk, harms nothing.
  (void)write_rank_board(setup_.directory.rank_board(setup_.request.attempt), lifecycle_.ranks(),
                         now());
}

void Attempt::end(base::ExitStatus status) {
  while (has_news(std::chrono::milliseconds(0), -1)) {
  }  // last words are already in the sockets
  output_ += process_.read_output();
  const auto report = setup_.backend.report(output_);
  std::string where = report.out_of_memory ? "in the rank's control group, as Slurm says" : "";
  if (memory_kills_.count() > kills_before_) where = memory_kills_.where();
  kill(0, Owned::kKill);
  feed(LauncherEnded{status, report, where});
}

// USR2 comes from `ptrain stop`, INT from a terminal; the others from Slurm where there is a job.
void Attempt::obey(StopSignals& signals) {
  while (const auto signal = signals.next()) {
    const int number = signal->number;
    const bool by_slurm = setup_.clock != nullptr && number != SIGUSR2 && number != SIGINT;
    stop_asked_ = true;
    feed(StopAsked{"signal " + std::string(sigabbrev_np(number)), number,
                   by_slurm && !signal->at_once, signal->at_once});
  }
}

// What takes longer the more ranks there are: not after each message of one.
void Attempt::tick() {
  if (now() - ticked_at_ < std::chrono::duration<double>(kTick).count()) return;
  ticked_at_ = now();
  output_ += process_.read_output();
  if (output_.size() > kMostOutput) output_.erase(0, output_.size() - kMostOutput);
  feed(Tick{});
  look_around();
}

void Attempt::flush_events() {
  const Status written = listeners_.log.flush();
  if (!written) listeners_.progress.say("warning: " + error_line(written.error()));
}

Result<AttemptEnd> Attempt::run(StopSignals& signals) {
  while (!lifecycle_.ended()) {
    has_news(kTick, signals.file());
    obey(signals);
    if (const auto status = process_.poll())
      end(*status);
    else
      tick();
    flush_events();
  }
  write_board();
  // On a full disk the verdict counts more than this log.
  const std::string log = setup_.directory.launcher_log(setup_.request.attempt);
  if (const auto kept = publish_file(log, output_); !kept && setup_.folder.is_there())
    listeners_.progress.say("warning: " + kept.error().message);
  return AttemptEnd{lifecycle_.verdict(), lifecycle_.next_shape(), time_is_up_, published_};
}

std::vector<std::string> nodes_left(std::vector<std::string> nodes, const run::Verdict& verdict) {
  if (verdict.code == ExitCode::kNodeLost)
    std::erase_if(nodes, [&](const std::string& node) {
      return std::ranges::find(verdict.nodes, node) != verdict.nodes.end();
    });
  return nodes;
}

}  // namespace

Result<AttemptSetup> prepare_attempt(const Setup& setup, const FolderWatch& folder,
                                     const run::Plan& plan, const run::ShapePlan& shape,
                                     int number) {
  AttemptSetup attempt{
      setup.backend, {}, {}, setup.directory, folder, plan.recipe.failure.hang_timeout_s, {},
      nullptr};
  attempt.launch.worker = setup.worker;
  attempt.launch.num_ranks = shape.layout.num_ranks();
  attempt.launch.threads = shape.threads;
  attempt.launch.num_nodes = run::num_nodes(plan);
  attempt.launch.on_gpus = !plan.ranks.empty() && plan.ranks.front().gpu >= 0;
  if (!setup.nodes.empty()) attempt.launch.nodes = nodes_of(plan);
  for (int rank = 0; rank < attempt.launch.num_ranks; ++rank)
    attempt.rank_nodes.push_back(plan.ranks[static_cast<std::size_t>(rank)].node);
  attempt.launch.inside = start::opening(
      plan.recipe.cluster.container, {setup.directory.root, plan.recipe_folder,
                                      std::filesystem::path(setup.worker).parent_path().string()});
  attempt.launch.inside.insert(attempt.launch.inside.end(), setup.before_worker.begin(),
                               setup.before_worker.end());
  attempt.sweep = setup.sweep;
  attempt.request.run_directory = setup.directory.root;
  attempt.request.attempt = number;
  attempt.request.shape = shape.name;
  PTRAIN_CHECK(create_attempt(setup.directory, number));
  PTRAIN_CHECK(write_plan(setup.directory.attempt_plan(number), plan));
  return attempt;
}

Result<AttemptEnd> run_attempt(AttemptSetup setup, const Listeners& listeners,
                               StopSignals& signals) {
  PTRAIN_TRY(setup.request.control_host, setup.backend.control_host());
  PTRAIN_TRY(ControlServer server,
             ControlServer::open(setup.request.attempt, setup.launch.num_ranks,
                                 setup.request.control_host));
  setup.request.control_port = server.port();
  setup.launch.request_file = setup.directory.request(setup.request.attempt);
  setup.launch.token = server.token();
  PTRAIN_CHECK(publish_file(setup.launch.request_file, run::to_json_text(setup.request)));
  PTRAIN_TRY(base::Subprocess process,
             base::Subprocess::start(setup.backend.command(setup.launch)));
  auto end = Attempt(setup, std::move(server), std::move(process), listeners).run(signals);
  // At the end of a job there is no time left but for the verdict.
  if (end && setup.sweep && !is_end_of_job(end->verdict.code))
    setup.sweep(nodes_left(setup.launch.nodes, end->verdict), setup.launch.token);
  return end;
}

}  // namespace ptrain::supervise
