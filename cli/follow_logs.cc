#include "cli/follow_logs.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>

#include "cli/output.h"
#include "cli/run_status.h"
#include "launcher/base/file.h"
#include "launcher/base/rare_question.h"
#include "launcher/submit/job_file.h"
#include "launcher/supervise/run_folder.h"
#include "launcher/supervise/signals.h"

namespace ptrain::cli {

namespace {

constexpr int kLookMs = 200;

class LogFollower {
 public:
  LogFollower(const run::Directory& directory, int rank) : directory_(directory), rank_(rank) {}

  Result<ExitCode> run();

 private:
  void copy_all();
  bool copy(const std::string& path);
  bool has_ended();

  run::Directory directory_;
  int rank_;
  std::map<std::string, std::streamoff> copied_;  // bytes of each file
  std::string shown_;                             // the file that the last lines are of
  std::string told_;
  base::RareQuestion question_;
};

// False: there is no such file.
bool LogFollower::copy(const std::string& path) {
  if (!is_regular_file(path)) return false;
  std::ifstream file(path, std::ios::binary);
  auto& copied = copied_[path];
  file.seekg(copied);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  text.resize(text.rfind('\n') + 1);  // whole lines; the rest comes with its end
  if (text.empty()) return true;
  copied += static_cast<std::streamoff>(text.size());
  if (rank_ < 0 && shown_ != path) print_line("==> " + path);
  shown_ = path;
  print(escaped(text));
  std::fflush(stdout);
  return true;
}

void LogFollower::copy_all() {
  if (const auto job = submit::read_job(directory_); job && rank_ < 0)
    copy(directory_.job_output(name_of(*job)));
  const int last = supervise::next_attempt(directory_) - 1;
  for (int attempt = std::max(1, last - 1); attempt <= last; ++attempt) {
    if (rank_ >= 0) {
      copy(directory_.rank_log(attempt, rank_));
      continue;
    }
    for (int rank = 0; copy(directory_.rank_log(attempt, rank)); ++rank) {
    }
  }
}

// The answer may come from Slurm's controller.
bool LogFollower::has_ended() {
  if (!question_.is_due()) return false;
  const auto status = status_of(directory_);
  if (!status) return false;  // its files are being written
  const bool goes_on = status->state == "running" || status->state == "queued";
  const std::string words = status->job.empty()
                                ? status->state
                                : fmt::format("job {} {}", status->job, status->job_state);
  if (words != told_) say("ptrain: " + words);
  told_ = words;
  return !goes_on;
}

Result<ExitCode> LogFollower::run() {
  supervise::StopSignals signals;
  for (;;) {
    const bool ended = has_ended();
    copy_all();
    if (ended) return ExitCode::kDone;
    pollfd wake{signals.file(), POLLIN, 0};
    ::poll(&wake, 1, kLookMs);
    if (signals.next()) return ExitCode::kDone;
  }
}

}  // namespace

Result<ExitCode> follow_logs(const run::Directory& directory, int rank) {
  return LogFollower(directory, rank).run();
}

}  // namespace ptrain::cli
