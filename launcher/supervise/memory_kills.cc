#include "launcher/supervise/memory_kills.h"

#include <fmt/format.h>

#include <fstream>
#include <optional>
#include <sstream>

namespace ptrain::supervise {

namespace {

// The value of "oom_kill N" in a file of such lines.
std::optional<std::int64_t> kills_in(const std::string& path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::int64_t value = 0;
    if (words >> name >> value && name == "oom_kill") return value;
  }
  return std::nullopt;
}

// Where a line "NUMBER:CONTROLLERS:PATH" of /proc/self/cgroup has its counter. Version 2 has number
// 0 and no controllers.
std::string counter_of(const std::string& line) {
  const auto first = line.find(':'), second = line.find(':', first + 1);
  if (first == std::string::npos || second == std::string::npos) return "";
  const auto controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
  const std::string path = line.substr(second + 1);
  if (line.starts_with("0::")) return fmt::format("/sys/fs/cgroup{}/memory.events", path);
  if (controllers.find(",memory,") == std::string::npos) return "";
  return fmt::format("/sys/fs/cgroup/memory{}/memory.oom_control", path);
}

}  // namespace

MemoryKills MemoryKills::find(const std::string& root) {
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::string counter = counter_of(line);
    if (!counter.empty() && kills_in(root + counter))
      return {root + counter, "in this job's control group"};
  }
  return {root + "/proc/vmstat", "on this machine"};
}

std::int64_t MemoryKills::count() const { return kills_in(path_).value_or(0); }

}  // namespace ptrain::supervise
