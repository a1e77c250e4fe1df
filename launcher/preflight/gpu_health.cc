#include "launcher/preflight/gpu_health.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "launcher/cluster/gpus.h"
#include "launcher/cluster/nvidia_smi.h"
#include "launcher/cluster/topology.h"

namespace ptrain::preflight {

namespace {

using cluster::take_field;

std::string gpu_error_here() {
  const auto answer = cluster::ask_nvidia_smi(kGpuQuery);
  if (!answer) return "";
  if (!*answer) return "nvidia-smi: " + answer->error().message;
  if ((*answer)->status != base::ExitStatus{}) return cluster::failure_of_nvidia_smi(**answer);
  return gpu_error_in((*answer)->output);
}

std::string missing_here(const cluster::GpuSurvey& survey) {
  GpuCounts counts{survey.asked, static_cast<int>(survey.gpus.size())};
  if (const char* given = std::getenv("SLURM_GPUS_ON_NODE")) counts.of_job = std::atoi(given);
  if (survey.gpus.empty())
    if (const auto topology = cluster::Topology::find(cluster::Topology::Look::kDevices))
      counts.on_bus = topology->num_nvidia_gpus();
  return missing_gpus(counts);
}

// "0, 0, No" is a healthy one; "[N/A]" is a kind that does not count its errors.
std::string error_of(std::string_view line) {
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

std::string gpu_error_in(std::string_view lines) {
  std::string all;
  while (!lines.empty()) {
    const auto line = take_field(lines, '\n');
    if (line.empty()) continue;
    if (const auto one = error_of(line); !one.empty()) all += (all.empty() ? "" : ", ") + one;
  }
  return all;
}

// A job that asked for no GPUs sees none of those on the bus, where Slurm keeps them apart.
std::string missing_gpus(const GpuCounts& counts) {
  const std::string who = counts.of_job > counts.listed
                              ? fmt::format("Slurm gives the job {} GPUs here", counts.of_job)
                          : counts.listed == 0 && counts.on_bus > 0
                              ? fmt::format("{} NVIDIA GPUs are on the bus", counts.on_bus)
                              : "";
  if (who.empty()) return "";
  return who + (counts.has_tool ? fmt::format(", and nvidia-smi lists {}", counts.listed)
                                : ", and there is no nvidia-smi in PATH");
}

void look_at_gpus(NodeReport& report) {
  const auto survey = cluster::survey_gpus();
  report.num_gpus = static_cast<int>(cluster::gpus_here().size());
  report.gpu_tool_error = survey.complaint.empty() ? missing_here(survey) : survey.complaint;
  if (!survey.gpus.empty()) report.gpu_error = gpu_error_here();
}

}  // namespace ptrain::preflight
