#include "launcher/submit/job_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "launcher/cluster/slurm_command.h"
#include "launcher/submit/slurm_text.h"

namespace ptrain::submit {

namespace {

using cluster::value_of;

JobPhase phase_of(std::string_view word) {
  const auto is_one_of = [&](std::initializer_list<std::string_view> words) {
    return std::ranges::find(words, word) != words.end();
  };
  if (is_one_of(
          {"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"}))
    return JobPhase::kWaiting;
  if (is_one_of({"RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED", "STAGE_OUT", "RESIZING",
                 "SIGNALING", "STOPPED"}))
    return JobPhase::kRunning;
  return word.empty() ? JobPhase::kUnknown : JobPhase::kEnded;
}

// "3:0": exit code and signal.
void read_exit(std::string_view text, JobState& state) {
  const auto colon = std::min(text.find(':'), text.size());
  std::from_chars(text.data(), text.data() + colon, state.code);
  if (colon < text.size())
    std::from_chars(text.data() + colon + 1, text.data() + text.size(), state.signal);
}

std::string unless_nothing(std::string_view text) {
  return text == "None" || text == "(null)" || text == "Unknown" || text == "N/A"
             ? std::string()
             : std::string(text);
}

tl::unexpected<Error> nothing_in(std::string_view text) {
  return fail(ExitCode::kEnvironment,
              fmt::format("Slurm says nothing of the job: {}", text.substr(0, text.find('\n'))));
}

}  // namespace

bool is_over(const JobState& state) {
  return state.phase == JobPhase::kEnded || state.phase == JobPhase::kForgotten;
}

Result<JobState> state_in_scontrol(std::string_view text) {
  JobState state;
  state.word = value_of(text, "JobState");
  if (!text.starts_with("JobId=") || state.word.empty()) return nothing_in(text);
  state.phase = phase_of(state.word);
  state.reason = unless_nothing(value_of(text, "Reason"));
  state.nodes = unless_nothing(value_of(text, "NodeList"));
  state.start = unless_nothing(value_of(text, "StartTime"));
  read_exit(value_of(text, "ExitCode"), state);
  return state;
}

Result<JobState> state_in_sacct(std::string_view text) {
  const auto line = text.substr(0, text.find('\n'));
  const auto first = line.find('|');
  const auto second = first == line.npos ? line.npos : line.find('|', first + 1);
  if (second == line.npos) return nothing_in(text);
  JobState state;
  state.word = line.substr(0, std::min(first, line.find(' ')));  // "CANCELLED by 0"
  state.phase = phase_of(state.word);
  read_exit(line.substr(first + 1, second - first - 1), state);
  state.nodes = unless_nothing(line.substr(second + 1));
  if (state.nodes == "None assigned") state.nodes.clear();
  return state;
}

JobState look_up(const std::string& job) {
  const auto shown = cluster::ask_slurm({"scontrol", "-o", "show", "job", job});
  const auto state = shown.and_then(state_in_scontrol);
  if (state) return *state;
  JobState out;
  if (state.error().message.find("Invalid job id") == std::string::npos) {
    out.reason = state.error().message;
    return out;
  }
  const auto booked =
      cluster::ask_slurm({"sacct", "-nXP", "-j", job, "-o", "State,ExitCode,NodeList"})
          .and_then(state_in_sacct);
  if (booked) return *booked;
  out.phase = JobPhase::kForgotten;
  return out;
}

std::string in_words(const JobState& state) {
  const std::string reason = state.reason.empty() ? "" : fmt::format(" ({})", state.reason);
  switch (state.phase) {
    case JobPhase::kWaiting:
      return "waits in the queue" + reason;
    case JobPhase::kRunning:
      return state.nodes.empty() ? "runs" : "runs on " + state.nodes;
    case JobPhase::kEnded:
      return fmt::format("has ended: {}{}{}", state.word,
                         state.code != 0 ? fmt::format(", exit code {}", state.code) : "",
                         state.signal != 0 ? fmt::format(", signal {}", state.signal) : "");
    case JobPhase::kForgotten:
      return "has ended, and Slurm has forgotten it";
    case JobPhase::kUnknown:
      break;
  }
  return "is not known: " + state.reason;
}

}  // namespace ptrain::submit
