#include "launcher/supervise/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

namespace ptrain::supervise {

namespace {

constexpr std::size_t kTailLines = 20;
constexpr std::streamoff kTailBytes = 65536;

bool is_failure(ExitCode code) {
  return code != ExitCode::kDone && code != ExitCode::kStopped && code != ExitCode::kPreempted;
}

std::string difference(double predicted, double measured) {
  if (predicted <= 0) return "no prediction";
  return fmt::format("{:+.1f} %", 100 * (measured / predicted - 1));
}

double predicted_bytes(const run::Prediction& predicted) {
  std::int64_t most = 0;
  for (const auto& one : predicted.classes) {
    std::int64_t sum = 0;
    for (const Bytes bytes : one.bytes) sum += bytes.value;
    most = std::max(most, sum);
  }
  return static_cast<double>(most);
}

}  // namespace

std::string verdict_line(const run::Verdict& verdict) {
  const int code = static_cast<int>(verdict.code);
  std::string line = is_failure(verdict.code)
                         ? fmt::format("ptrain: FAILED ({}) {}", code, verdict.reason)
                         : "ptrain: " + verdict.reason;
  line += fmt::format("; step {}", verdict.step);
  if (!verdict.next.empty()) line += "; " + verdict.next;
  return line;
}

std::vector<std::string> tail_of(const std::string& path, std::size_t count) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>(0, size - kTailBytes));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  if (lines.size() > count)
    lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(count));
  return lines;
}

std::vector<std::string> comparison(const run::Plan& plan, std::span<const run::StepDone> steps) {
  if (steps.empty()) return {};
  const std::string& name = steps.back().shape;
  const auto shape = std::ranges::find(plan.shapes, name, &run::ShapePlan::name);
  if (shape == plan.shapes.end()) return {};
  std::vector<double> times;
  std::int64_t bytes = 0;
  for (const auto& step : steps) {
    if (step.shape != name) continue;
    times.push_back(step.step_s);
    bytes = std::max(bytes, step.bytes_peak);
  }
  std::ranges::sort(times);
  const double time = times[times.size() / 2];
  const double mebi = 1 << 20;
  const double planned = predicted_bytes(shape->predicted);
  return {fmt::format("shape {}: step time {:.4f} s predicted, {:.4f} s measured ({})", name,
                      shape->predicted.step_s, time, difference(shape->predicted.step_s, time)),
          fmt::format("shape {}: memory a rank {:.1f} MiB predicted, {:.1f} MiB measured ({})",
                      name, planned / mebi, static_cast<double>(bytes) / mebi,
                      difference(planned, static_cast<double>(bytes)))};
}

std::vector<std::string> final_lines(const run::Plan& plan, const run::Directory& directory,
                                     const run::Verdict& verdict,
                                     std::span<const run::StepDone> steps) {
  std::vector<std::string> lines;
  if (is_failure(verdict.code)) {
    const std::string log = verdict.rank >= 0
                                ? directory.rank_log(verdict.attempt, verdict.rank)
                                : directory.attempt_folder(verdict.attempt) + "/launcher.log";
    lines.push_back("the end of " + log + ":");
    for (const auto& line : tail_of(log, kTailLines)) lines.push_back("  | " + line);
  }
  for (auto& line : comparison(plan, steps)) lines.push_back(std::move(line));
  lines.push_back("run: " + directory.root);
  lines.push_back(verdict_line(verdict));
  return lines;
}

}  // namespace ptrain::supervise
