#include "launcher/supervise/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "launcher/base/file.h"
#include "launcher/supervise/policy.h"

namespace ptrain::supervise {

namespace {

constexpr std::size_t kTailLines = 20;
constexpr std::streamoff kTailBytes = 65536;

// The failed rank's. Where none is named (mpirun does not always say which rank ended a job that
// never began), the first rank's that wrote anything, else what mpirun wrote.
std::string log_of(const run::Directory& directory, const run::Verdict& verdict) {
  if (verdict.rank >= 0) return directory.rank_log(verdict.attempt, verdict.rank);
  for (int rank = 0;; ++rank) {
    const std::string log = directory.rank_log(verdict.attempt, rank);
    if (!is_regular_file(log)) return directory.launcher_log(verdict.attempt);
    if (!tail_of(log, 1).empty()) return log;
  }
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
  if (!is_regular_file(path)) return {};  // a pipe would be waited for
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>(0, size - kTailBytes));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  if (lines.size() > count)
    lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(count));
  return lines;
}

std::vector<std::string> failure_lines(const run::Directory& directory,
                                       const run::Verdict& verdict) {
  if (!is_failure(verdict.code)) return {};
  const std::string log = log_of(directory, verdict);
  const auto tail = tail_of(log, kTailLines);
  std::vector<std::string> lines{(tail.empty() ? "nothing is in " : "the end of ") + log};
  for (const auto& line : tail) lines.push_back("  | " + line);
  return lines;
}

}  // namespace ptrain::supervise
