#include "launcher/submit/follow.h"

#include <fmt/format.h>
#include <poll.h>

#include <chrono>
#include <cstdio>
#include <fstream>

#include "launcher/base/file.h"
#include "launcher/base/printable.h"
#include "launcher/base/rare_question.h"
#include "launcher/submit/job_file.h"
#include "launcher/supervise/event_log.h"
#include "launcher/supervise/run_folder.h"

namespace ptrain::submit {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::duration;

constexpr int kLookMs = 200;           // at files
constexpr duration<double> kGrace{3};  // file systems over a network show new files late

void show(const std::string& text) {
  std::fputs(printable(text, "\n\t").c_str(), stderr);
  std::fflush(stderr);
}

class Follower {
 public:
  Follower(const run::Directory& directory, JobFile job)
      : directory_(directory), job_(std::move(job)) {}

  Result<std::optional<ExitCode>> run(supervise::StopSignals& signals);

 private:
  void copy_output();
  void copy_new();
  void ask_slurm();
  std::optional<ExitCode> verdict() const;
  Result<std::optional<ExitCode>> finish();

  run::Directory directory_;
  JobFile job_;
  JobState state_;
  std::string told_;
  std::streamoff copied_ = 0;  // of the output that the job has now
  base::RareQuestion question_;
  Clock::time_point over_{};
};

// A task of an array that begins writes a file of its own.
void Follower::copy_output() {
  copy_new();
  if (job_.num_tasks == 0) return;
  const auto now = read_job(directory_);
  if (!now || now->task == job_.task) return;
  copy_new();  // it wrote its last before the other began
  job_.task = now->task;
  copied_ = 0;
  copy_new();
}

void Follower::copy_new() {
  const std::string path = directory_.job_output(name_of(job_));
  if (!is_regular_file(path)) return;
  std::ifstream file(path, std::ios::binary);
  if (!file.seekg(copied_)) return;
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  copied_ += static_cast<std::streamoff>(text.size());
  if (!text.empty()) show(text);
}

void Follower::ask_slurm() {
  if (!question_.is_due()) return;
  const bool was_over = is_over(state_);
  state_ = look_up(job_.job);
  if (is_over(state_) && !was_over) over_ = Clock::now();
  const std::string words = fmt::format("job {} {}", name_of(job_.job, state_), in_words(state_));
  if (words == told_ || is_over(state_)) return;
  told_ = words;
  show(fmt::format("ptrain: {}\n", words));
}

std::optional<ExitCode> Follower::verdict() const {
  if (!has_verdict(directory_, job_)) return {};
  const auto read = supervise::read_verdict(directory_.verdict());
  return read ? std::optional(read->code) : std::nullopt;
}

Result<std::optional<ExitCode>> Follower::finish() {
  copy_output();
  if (const auto code = verdict()) return code;
  const std::string name = name_of(job_.job, state_);
  const Ending ending = ending_of(name, state_, is_regular_file(directory_.job_output(name)),
                                  supervise::resume_command(directory_));
  return fail(ending.code, ending.reason, ending.next);
}

Result<std::optional<ExitCode>> Follower::run(supervise::StopSignals& signals) {
  for (;;) {
    copy_output();
    ask_slurm();
    if (is_over(state_) && (verdict() || Clock::now() - over_ > kGrace)) return finish();
    pollfd wake{signals.file(), POLLIN, 0};
    ::poll(&wake, 1, kLookMs);
    if (signals.next()) return std::optional<ExitCode>();
  }
}

}  // namespace

Ending ending_of(const std::string& job, const JobState& state, bool has_output,
                 const std::string& resume) {
  const std::string what = fmt::format("Slurm job {} {}", job, in_words(state));
  const auto ends_with = [&](ExitCode code, const char* why) {
    return Ending{code, what + why, "continue with " + resume};
  };
  if (state.word == "CANCELLED" && !has_output)
    return ends_with(ExitCode::kStopped, " before it began to train");
  if (state.word == "CANCELLED") return ends_with(ExitCode::kStopped, "");
  if (state.word == "TIMEOUT") return ends_with(ExitCode::kPreempted, ": its time was up");
  if (state.word == "PREEMPTED") return ends_with(ExitCode::kPreempted, "");
  if (state.word == "NODE_FAIL") return ends_with(ExitCode::kNodeLost, "");
  if (state.word == "OUT_OF_MEMORY") return ends_with(ExitCode::kOutOfMemory, "");
  if (!has_output && state.phase == JobPhase::kEnded)
    return {ExitCode::kEnvironment,
            what + ", and its script wrote nothing: the nodes seem not to see the run directory",
            "start a new run with --directory on a file system that all nodes share"};
  return {ExitCode::kEnvironment, what + ", without a verdict of ptrain",
          "look into its output in logs/ of the run directory; continue with " + resume};
}

Result<std::optional<ExitCode>> follow(const run::Directory& directory,
                                       supervise::StopSignals& signals) {
  PTRAIN_TRY(JobFile job, read_job(directory));
  return Follower(directory, std::move(job)).run(signals);
}

}  // namespace ptrain::submit
