#include "launcher/submit/job_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ranges>
#include <tuple>

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

// The number of a task; 0: it is none, as "2-3%1", those that wait, or 4294967294, once they were
// cancelled.
int task_number(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : 0;
}

std::string one_task(std::string_view text) {
  return task_number(text) > 0 ? std::string(text) : "";
}

JobState state_in_line(std::string_view line) {
  JobState state;
  state.word = value_of(line, "JobState");
  state.phase = phase_of(state.word);
  state.reason = unless_nothing(value_of(line, "Reason"));
  state.nodes = unless_nothing(value_of(line, "NodeList"));
  state.start = unless_nothing(value_of(line, "StartTime"));
  read_exit(value_of(line, "ExitCode"), state);
  // A comment may say anything.
  state.task = one_task(value_of(line.substr(0, line.find(" JobName=")), "ArrayTaskId"));
  return state;
}

// "CANCELLED by 0|0:15|node1|7_2"; without a word: it is no such line.
JobState state_in_booked_line(std::string_view line) {
  std::vector<std::string_view> parts;
  for (const auto part : std::views::split(line, '|')) parts.emplace_back(part.begin(), part.end());
  JobState state;
  if (parts.size() != 4) return state;
  state.word = parts[0].substr(0, parts[0].find(' '));
  state.phase = phase_of(state.word);
  read_exit(parts[1], state);
  state.nodes = unless_nothing(parts[2]);
  if (state.nodes == "None assigned") state.nodes.clear();
  const auto underscore = parts[3].find('_');
  if (underscore != std::string_view::npos) state.task = one_task(parts[3].substr(underscore + 1));
  return state;
}

// How much one of several tasks tells of how their array stands, the later the more.
auto weight(const JobState& state) {
  int phase = state.nodes.empty() ? 0 : 1;
  if (state.phase == JobPhase::kRunning) phase = state.word == "COMPLETING" ? 2 : 4;
  if (state.phase == JobPhase::kWaiting) phase = 3;
  return std::tuple(phase, task_number(state.task));
}

// Of all lines; without a word: none is of a job.
JobState state_in_lines(std::string_view text, JobState (*state_in)(std::string_view)) {
  JobState best;
  for (const std::string_view line : cluster::lines_of(text)) {
    JobState one = state_in(line);
    if (one.word.empty()) continue;
    if (best.word.empty() || weight(one) > weight(best)) best = std::move(one);
  }
  return best;
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
  JobState state = state_in_lines(text, state_in_line);
  if (!text.starts_with("JobId=") || state.word.empty()) return nothing_in(text);
  return state;
}

Result<JobState> state_in_sacct(std::string_view text) {
  JobState state = state_in_lines(text, state_in_booked_line);
  if (state.word.empty()) return nothing_in(text);
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
      cluster::ask_slurm({"sacct", "-nXP", "-j", job, "-o", "State,ExitCode,NodeList,JobID"})
          .and_then(state_in_sacct);
  if (booked) return *booked;
  out.phase = JobPhase::kForgotten;
  return out;
}

std::string name_of(const std::string& job, const std::string& task) {
  return task.empty() ? job : job + "_" + task;
}

std::string name_of(const std::string& job, const JobState& state) {
  return name_of(job, state.task);
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
