#include "launcher/cluster/slurm_command.h"

#include <fmt/format.h>

#include <algorithm>

namespace ptrain::cluster {

base::Command slurm_command(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "/usr/bin/env");
  return {std::move(arguments), {}};
}

Result<std::string> ask_slurm(std::vector<std::string> arguments, std::chrono::seconds patience) {
  const std::string name = arguments.front();
  PTRAIN_TRY(base::Finished done, base::run_to_end(slurm_command(std::move(arguments)), patience));
  if (done.status == base::ExitStatus{}) return std::move(done.output);
  return fail(ExitCode::kEnvironment, fmt::format("{}: {}", name, slurm_reason(done.output)));
}

std::vector<std::string_view> lines_of(std::string_view output) {
  std::vector<std::string_view> lines;
  while (!output.empty()) {
    lines.push_back(output.substr(0, output.find('\n')));
    output.remove_prefix(std::min(output.size(), lines.back().size() + 1));
  }
  return lines;
}

std::string slurm_reason(std::string_view output) {
  std::string out;
  for (std::string_view line : lines_of(output)) {
    for (const std::string_view prefix :
         {"sbatch: ", "scancel: ", "srun: ", "scontrol: ", "error: ", "allocation failure: "})
      if (line.starts_with(prefix)) line.remove_prefix(prefix.size());
    if (!line.empty()) out += (out.empty() ? "" : "; ") + std::string(line);
  }
  return out;
}

std::string_view value_of(std::string_view line, std::string_view key) {
  const std::string wanted = fmt::format(" {}=", key);
  const auto found = line.find(wanted);
  if (found == std::string_view::npos) return "";
  line.remove_prefix(found + wanted.size());
  return line.substr(0, line.find_first_of(" \n"));
}

}  // namespace ptrain::cluster
