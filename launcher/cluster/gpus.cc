#include "launcher/cluster/gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <optional>

#include "launcher/base/find_program.h"
#include "launcher/cluster/nvidia_smi.h"

namespace ptrain::cluster {

namespace {

constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// nvidia-smi writes the domain with eight digits, all others with four.
std::string bus_id_of(std::string_view text) {
  std::string id(text.substr(text.size() > 12 ? text.size() - 12 : 0));
  std::ranges::transform(id, id.begin(), [](char c) {
    return c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return id;
}

std::optional<Gpu> gpu_in(std::string_view line) {
  const auto number = number_in(take_field(line, ','));
  const auto bus_id = take_field(line, ','), uuid = take_field(line, ',');
  const auto mebibytes = number_in(take_field(line, ','));
  if (!number || !mebibytes || *mebibytes <= 0) return std::nullopt;
  return Gpu{static_cast<int>(*number), bus_id_of(bus_id), std::string(uuid),
             *mebibytes * kMebibyte};
}

}  // namespace

std::vector<Gpu> gpus_from_nvidia_smi(std::string_view text) {
  std::vector<Gpu> gpus;
  while (!text.empty())
    if (auto gpu = gpu_in(take_field(text, '\n'))) gpus.push_back(std::move(*gpu));
  return gpus;
}

GpuSurvey survey_of(const Result<base::Finished>& answer) {
  if (!answer) return {{}, "nvidia-smi: " + answer.error().message, true};
  GpuSurvey survey{gpus_from_nvidia_smi(answer->output), "", true};
  std::string words;  // the first that are no GPU
  for (std::string_view rest = answer->output; !rest.empty() && words.empty();)
    if (const auto line = take_field(rest, '\n'); !line.empty() && !gpu_in(line)) words = line;
  if (words == "No devices were found") return survey;
  if (answer->status != base::ExitStatus{})
    survey.complaint = failure_of_nvidia_smi(*answer);
  else if (!words.empty())
    survey.complaint = "nvidia-smi says: " + words;
  return survey;
}

std::vector<Gpu> visible_gpus(const std::vector<Gpu>& all, const char* visible) {
  if (visible == nullptr) return all;
  std::vector<Gpu> gpus;
  for (std::string_view list(visible); !list.empty();) {
    const auto name = take_field(list, ',');
    const auto found = std::ranges::find_if(all, [&](const Gpu& gpu) {
      if (const auto number = number_in(name)) return gpu.number == *number;
      return name.starts_with("GPU-") && gpu.uuid.starts_with(name);
    });
    if (found == all.end()) break;
    gpus.push_back(*found);
  }
  return gpus;
}

GpuSurvey survey_gpus() {
  static std::map<std::string, GpuSurvey> known_surveys;
  const std::string program = base::find_program("nvidia-smi");
  if (const auto known = known_surveys.find(program); known != known_surveys.end())
    return known->second;
  const auto answer = ask_nvidia_smi(kGpusQuery);
  return known_surveys[program] = answer ? survey_of(*answer) : GpuSurvey{};
}

std::vector<Gpu> gpus_here() {
  return visible_gpus(survey_gpus().gpus, std::getenv("CUDA_VISIBLE_DEVICES"));
}

}  // namespace ptrain::cluster
