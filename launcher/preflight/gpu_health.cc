#include "launcher/preflight/gpu_health.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>

#include "launcher/base/find_program.h"
#include "launcher/base/subprocess.h"

namespace ptrain::preflight {

namespace {

constexpr std::chrono::seconds kLimit{10};

// Takes what is before the separator, without blanks around it.
std::string_view take(std::string_view& text, char separator) {
  auto part = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(text.size(), part.size() + 1));
  while (part.starts_with(' ')) part.remove_prefix(1);
  while (part.ends_with(' ') || part.ends_with('\r')) part.remove_suffix(1);
  return part;
}

// "0, 0, No" is a healthy one; "[N/A]" is a kind that does not count its errors.
std::string complaint_of(std::string_view line) {
  const auto index = take(line, ','), errors = take(line, ','), pending = take(line, ',');
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(errors.data(), errors.data() + errors.size(), count);
  if (error == std::errc() && count > 0)
    return fmt::format("GPU {} has had {} uncorrected memory errors", index, count);
  if (pending == "Yes") return fmt::format("GPU {} waits for a reset to retire memory", index);
  const bool silent = errors == "[N/A]" || errors == "[Not Supported]";
  if (error == std::errc() || silent) return "";
  return fmt::format("GPU {} does not answer ({})", index, errors);
}

}  // namespace

std::string gpu_complaint_in(std::string_view lines) {
  std::string all;
  while (!lines.empty()) {
    const auto line = take(lines, '\n');
    if (line.empty()) continue;
    if (const auto one = complaint_of(line); !one.empty()) all += (all.empty() ? "" : ", ") + one;
  }
  return all;
}

std::string gpu_complaint() {
  const std::string tool = base::find_program("nvidia-smi");
  if (tool.empty()) return "";
  const auto done = base::run_to_end(
      {{tool, fmt::format("--query-gpu={}", kGpuQuery), "--format=csv,noheader,nounits"}, {}},
      kLimit);
  if (!done) return done.error().message;
  std::string_view output = done->output;
  if (done->status != base::ExitStatus{})
    return fmt::format("nvidia-smi fails: {}", take(output, '\n'));
  return gpu_complaint_in(output);
}

}  // namespace ptrain::preflight
