#include "launcher/cluster/nvidia_smi.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "launcher/base/find_program.h"

namespace ptrain::cluster {

std::optional<Result<base::Finished>> ask_nvidia_smi(std::string_view query,
                                                     std::chrono::seconds patience) {
  const std::string program = base::find_program("nvidia-smi");
  if (program.empty()) return std::nullopt;
  return base::run_to_end(
      {{program, fmt::format("--query-gpu={}", query), "--format=csv,noheader,nounits"}, {}},
      patience);
}

std::string failure_of_nvidia_smi(const base::Finished& finished) {
  std::string_view rest = finished.output, words;
  while (words.empty() && !rest.empty()) words = take_field(rest, '\n');
  const bool killed = finished.status.signal != 0;
  return fmt::format("nvidia-smi fails with {} {}{}{}", killed ? "signal" : "code",
                     killed ? finished.status.signal : finished.status.code,
                     words.empty() ? "" : ": ", words);
}

std::string_view take_field(std::string_view& text, char separator) {
  auto part = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(text.size(), part.size() + 1));
  while (part.starts_with(' ')) part.remove_prefix(1);
  while (part.ends_with(' ') || part.ends_with('\r')) part.remove_suffix(1);
  return part;
}

}  // namespace ptrain::cluster
