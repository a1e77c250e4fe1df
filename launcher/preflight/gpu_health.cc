#include "launcher/preflight/gpu_health.h"

#include <fmt/format.h>

#include <charconv>

#include "launcher/cluster/nvidia_smi.h"

namespace ptrain::preflight {

namespace {

using cluster::take_field;

// "0, 0, No" is a healthy one; "[N/A]" is a kind that does not count its errors.
std::string complaint_of(std::string_view line) {
  const auto index = take_field(line, ','), errors = take_field(line, ','),
             pending = take_field(line, ',');
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
    const auto line = take_field(lines, '\n');
    if (line.empty()) continue;
    if (const auto one = complaint_of(line); !one.empty()) all += (all.empty() ? "" : ", ") + one;
  }
  return all;
}

std::string gpu_complaint() {
  const auto answer = cluster::ask_nvidia_smi(kGpuQuery);
  if (!answer) return "";
  if (!*answer) return answer->error().message;
  std::string_view output = (*answer)->output;
  if ((*answer)->status != base::ExitStatus{})
    return fmt::format("nvidia-smi fails: {}", take_field(output, '\n'));
  return gpu_complaint_in(output);
}

}  // namespace ptrain::preflight
