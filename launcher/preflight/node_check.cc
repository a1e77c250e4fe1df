#include "launcher/preflight/node_check.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include "core/base/hash.h"
#include "launcher/base/file.h"

namespace ptrain::preflight {

namespace {

constexpr double kSpeedSeconds = 0.1;

std::int64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  for (std::int64_t kibibytes = 0; file >> name >> kibibytes; file.ignore(64, '\n'))
    if (name == "MemAvailable:") return kibibytes << 10;
  return -1;
}

std::int64_t most_open_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return -1;
  constexpr rlim_t kEnough = 1 << 20;
  return static_cast<std::int64_t>(std::min(limit.rlim_max, kEnough));
}

std::string temporary_error() {
  const char* given = std::getenv("TMPDIR");
  std::string path = fmt::format("{}/ptrain-XXXXXX", given != nullptr && *given ? given : "/tmp");
  const int file = ::mkstemp(path.data());
  if (file < 0) return fmt::format("{}: {}", path, std::strerror(errno));
  ::close(file);
  ::unlink(path.c_str());
  return "";
}

// Empty where the file cannot be read.
std::string hash_or_none(const std::string& path) { return hash_of_file(path).value_or(""); }

}  // namespace

std::string node_name() {
  const char* given = std::getenv("SLURMD_NODENAME");
  if (given != nullptr) return given;
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

// The mark is a secret of this preflight.
std::string mark_file(const std::string& run_directory, const std::string& mark) {
  return fmt::format("{}/.preflight-{}", run_directory, hash128_hex(mark).substr(0, 12));
}

std::string answer_file(const std::string& run_directory, const std::string& mark,
                        const std::string& node) {
  return mark_file(run_directory, mark) + "-" + node;
}

void look_at_directory(const NodeTask& task, std::chrono::milliseconds limit, NodeReport& report) {
  const auto written = publish_file(answer_file(task.run_directory, task.mark, report.node),
                                    task.mark, Lasts::kUntilPowerFails);
  if (!written) report.write_error = written.error().message;
  report.sees_mark = seen_within(limit, task.run_directory, [&] {
    const auto mark = read_file(mark_file(task.run_directory, task.mark), 4096);
    return mark && *mark == task.mark;
  });
  const std::string plan = task.run_directory + "/plan.json";
  (void)seen_within(report.sees_mark ? limit : std::chrono::milliseconds(0), task.run_directory,
                    [&] { return task.plan.empty() || hash_or_none(plan) == task.plan; });
  report.plan = hash_or_none(plan);
  report.knows_directory = true;
  struct statvfs space {};
  if (::statvfs(task.run_directory.c_str(), &space) != 0) return;
  report.disk_free = static_cast<std::int64_t>(space.f_bavail * space.f_frsize);
  if (space.f_files > 0) report.inodes_free = static_cast<std::int64_t>(space.f_favail);
}

double core_speed(double seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr std::size_t kSize = 1 << 16;  // half a megabyte: in a core's own cache
  std::vector<double> from(kSize, 1.5), to(kSize, 0.5);
  double passed = 0, best = 0;
  while (passed < seconds) {
    const auto start = Clock::now();
    for (std::size_t i = 0; i < kSize; ++i) to[i] = 0.5 * to[i] + from[i];
    const double took = std::chrono::duration<double>(Clock::now() - start).count();
    passed += took;
    best = std::max(best, kSize / took);
  }
  // The result is looked at, so that no compiler leaves the work out.
  return to[kSize / 2] > 0 ? best : 0;
}

NodeReport check_node(const NodeTask& task) {
  NodeReport report;
  report.node = node_name();
  report.time_s =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  report.binary = hash_or_none(task.binary);
  report.engine = hash_or_none(task.engine);
  report.temporary_error = temporary_error();
  report.memory_available = available_memory();
  report.open_files = most_open_files();
  report.speed = core_speed(kSpeedSeconds);
  return report;
}

}  // namespace ptrain::preflight
