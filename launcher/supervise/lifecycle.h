#pragma once

#include <string>
#include <variant>
#include <vector>

#include "core/run/control.h"
#include "core/run/event.h"
#include "launcher/base/subprocess.h"
#include "launcher/start/backend.h"
#include "launcher/supervise/hang.h"
#include "launcher/supervise/stragglers.h"

namespace ptrain::supervise {

// What happens to an attempt.
struct RankSaid {
  int rank = 0;
  run::ControlMessage message;
};
struct RankGone {  // its connection closed
  int rank = 0;
  bool unreachable = false;  // its whole machine does not answer
};
struct LauncherEnded {  // and with it every rank
  base::ExitStatus status;
  start::LauncherReport report;
  std::string out_of_memory;  // by whom a kill for want of memory is told; else empty
};
struct StopAsked {
  std::string reason;
  int signal = 0;
  bool preempted = false;  // by Slurm, or because the job's time is up
  bool at_once = false;    // without a checkpoint
};
struct FolderLost {  // the run directory was removed or moved: nothing can be saved any more
  std::string what;
};
struct Tick {};
using Input = std::variant<RankSaid, RankGone, LauncherEnded, StopAsked, FolderLost, Tick>;

// What the supervisor has to do about it.
struct SendStop {
  int rank = -1;  // -1: every rank
  run::Stop stop;
};
struct AskStacks {};  // of every rank, for its log
struct KillAll {
  bool launcher_too = false;  // else only what is below it
};
struct Record {
  run::EventKind kind = run::EventKind::kWarning;
  int rank = -1;
  nlohmann::json fields = nlohmann::json::object();
};
using Output = std::variant<SendStop, AskStacks, KillAll, Record>;

// One attempt from its start to its verdict, as a pure state machine: `now` is the caller's clock
// in seconds. It trusts what ranks said and how they ended, never the launcher's exit code alone.
class Lifecycle {
 public:
  // `nodes`: where each rank is.
  Lifecycle(int attempt, std::vector<std::string> nodes, double hang_timeout_s, double now);

  std::vector<Output> on(double now, const Input& input);

  bool ended() const { return ended_; }
  const std::vector<LastHeard>& ranks() const { return ranks_; }
  const run::Verdict& verdict() const { return verdict_; }       // once ended
  const std::string& next_shape() const { return next_shape_; }  // of a shape that is finished

 private:
  struct Failure {
    ExitCode code = ExitCode::kRankError;
    int rank = -1;
    int signal = 0;
    std::string what;
    bool told = false;  // by the rank itself
  };

  void handle(const RankSaid& said);
  void handle(const RankGone& gone);
  void handle(const LauncherEnded& end);
  void handle(const StopAsked& asked);
  void handle(const FolderLost& lost);
  void handle(const Tick&);
  void hear(int rank, const run::Hello& hello);
  void hear(int rank, const run::Heartbeat& beat);
  void hear(int rank, const run::StepDone& done);
  void hear(int rank, const run::EventMessage& event);
  void hear(int rank, const run::Goodbye& goodbye);
  void hear(int rank, const run::Stop& stop);
  void hear(int rank, const run::ShowStacks& show);
  void fail(Failure failure);
  void lose(const std::string& node);
  void settle(const LauncherEnded& end);
  void judge();
  void kill(bool launcher_too);
  void cut_short();
  bool may_be_replaced_by(int rank) const;
  LastHeard& state(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  std::vector<Output> outputs_;
  std::vector<LastHeard> ranks_;
  std::vector<std::string> nodes_;       // of each rank
  std::vector<std::string> lost_nodes_;  // that do not answer
  std::vector<double> step_times_;
  Stragglers stragglers_;
  run::Verdict verdict_;
  std::string next_shape_;
  run::Goodbye worst_;  // of the goodbyes without failure: stopped rather than done
  StopAsked stop_;
  Failure failure_;
  double hang_timeout_s_;
  double now_;
  double progress_at_;
  double failed_at_ = 0;
  double killed_at_ = 0;
  int num_stops_ = 0;
  bool trains_ = false;      // the ranks are past their start, and may have something to save
  bool slurm_ends_ = false;  // it has told us so, and may kill ranks at any time
  bool cut_short_ = false;   // and has
  bool killed_ = false;
  bool failed_ = false;
  bool ended_ = false;
};

}  // namespace ptrain::supervise
