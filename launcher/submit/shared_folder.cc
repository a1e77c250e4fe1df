#include "launcher/submit/shared_folder.h"

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cstdlib>
#include <filesystem>

namespace ptrain::submit {

namespace {

// The run directory itself is still to be made.
std::string nearest_folder(std::filesystem::path path) {
  std::error_code ignored;
  while (path.has_relative_path() && !std::filesystem::exists(path, ignored))
    path = path.parent_path();
  return path;
}

bool is_in_memory(const std::string& path) {
  struct statfs system {};
  return ::statfs(path.c_str(), &system) == 0 &&
         (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC);
}

bool same_device(const std::string& a, const std::string& b) {
  struct stat first {
  }, second{};
  return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev;
}

tl::unexpected<Error> refused(const std::string& directory, const std::string& why) {
  return fail(
      ExitCode::kUsage,
      fmt::format("the run directory {} {}: the job's nodes would not see it", directory, why),
      "give --directory on a file system that all nodes share");
}

}  // namespace

std::string temporary_folder(const std::string& path, const std::string& tmpdir) {
  for (const std::string& folder : {tmpdir, std::string("/tmp"), std::string("/var/tmp"),
                                    std::string("/dev/shm"), std::string("/run")})
    if (!folder.empty() && path.starts_with(folder + "/")) return folder;
  return "";
}

Status check_shared(const std::string& directory, const std::string& program) {
  const std::string folder = nearest_folder(directory);
  if (is_in_memory(folder) && !same_device(folder, program))
    return refused(directory, "is in this machine's memory (tmpfs)");
  const char* tmpdir = std::getenv("TMPDIR");
  const std::string temporary = temporary_folder(directory, tmpdir == nullptr ? "" : tmpdir);
  if (temporary.empty() || program.starts_with(temporary + "/")) return {};
  return refused(directory, fmt::format("is in {}, of which every machine has its own", temporary));
}

}  // namespace ptrain::submit
