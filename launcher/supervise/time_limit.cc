#include "launcher/supervise/time_limit.h"

#include <time.h>

#include <algorithm>
#include <string>

#include "launcher/cluster/slurm_command.h"

namespace ptrain::supervise {

namespace {

constexpr double kForSlurm = 10;  // its signals come late or early, and ranks take time to end
constexpr double kForget = 0.9;   // of a long step, with each one after it
constexpr std::chrono::seconds kAgain{60};

}  // namespace

std::optional<std::chrono::system_clock::time_point> job_end(std::string_view shown) {
  constexpr std::string_view kKey = " EndTime=";
  const auto found = shown.find(kKey);
  if (found == std::string_view::npos) return std::nullopt;
  const std::string text(shown.substr(found + kKey.size(), 19));  // 2026-11-30T06:05:04
  tm parts{};
  const char* stop = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (stop == nullptr) return std::nullopt;
  parts.tm_isdst = -1;
  const time_t seconds = ::mktime(&parts);
  if (seconds < 0) return std::nullopt;
  return std::chrono::system_clock::from_time_t(seconds);
}

void SaveTimes::step(double seconds) { step_s_ = std::max(seconds, kForget * step_s_); }

void SaveTimes::save_started(double now) { started_ = now; }

void SaveTimes::save_ended(double now) {
  if (started_) save_s_ = std::max(save_s_, now - *started_);
  started_.reset();
}

double SaveTimes::reserve_s() const {
  return 2 * step_s_ + 1.5 * (save_s_ < 0 ? expected_s_ : save_s_) + kForSlurm;
}

void JobClock::ask() {
  answer_.clear();
  next_ = std::chrono::steady_clock::now() + kAgain;
  auto started =
      base::Subprocess::start(cluster::slurm_command({"scontrol", "-o", "show", "job", job_}));
  if (started) question_.emplace(std::move(*started));  // none in many containers
}

std::optional<double> JobClock::left_s() {
  if (job_.empty()) return std::nullopt;
  if (!question_ && std::chrono::steady_clock::now() >= next_) ask();
  if (question_) {
    answer_ += question_->read_output();
    if (const auto status = question_->poll()) {
      answer_ += question_->read_output();
      if (*status == base::ExitStatus{}) end_ = job_end(answer_);
      question_.reset();
    }
  }
  if (!end_) return std::nullopt;
  return std::chrono::duration<double>(*end_ - std::chrono::system_clock::now()).count();
}

}  // namespace ptrain::supervise
