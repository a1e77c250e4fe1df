#include "launcher/start/environment.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

namespace ptrain::start {

namespace {

// mpirun itself has about 30 files open beside those of ranks; ours are fewer (measured, 4.1.4).
constexpr std::int64_t kFilesOfNone = 64;

Status check_open_files(std::int64_t num_ranks, int files_of_rank) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  const auto needed = static_cast<rlim_t>(kFilesOfNone + files_of_rank * num_ranks);
  if (limit.rlim_cur >= needed) return {};
  limit.rlim_cur = std::min(limit.rlim_max, std::max<rlim_t>(needed, 4096));
  if (limit.rlim_cur >= needed && ::setrlimit(RLIMIT_NOFILE, &limit) == 0) return {};
  return fail(ExitCode::kEnvironment,
              fmt::format("a process may open {} files here, but starting {} ranks takes {}",
                          limit.rlim_max, num_ranks, needed),
              fmt::format("raise the limit: `ulimit -n {}`, or ask who runs this machine",
                          std::max<rlim_t>(needed, 4096)));
}

// Below this mpirun waits for ever for its own files and ranks' shared memory.
Status check_size_of_files() {
  constexpr rlim_t kLeast = rlim_t{16} << 20;
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= kLeast) return {};
  return fail(ExitCode::kEnvironment,
              fmt::format("a file may have {} bytes here, but starting ranks takes {}",
                          limit.rlim_cur, kLeast),
              "raise the limit: `ulimit -f unlimited`, or ask who runs this machine");
}

// Without room ranks would not learn how many they are, and not why either.
Status check_room(const std::string& folder) {
  constexpr std::uint64_t kLeast = std::uint64_t{1} << 20;
  struct statvfs disk {};
  if (::statvfs(folder.c_str(), &disk) != 0) return {};
  const std::uint64_t free = std::uint64_t{disk.f_bavail} * disk.f_frsize;
  if (free >= kLeast) return {};
  return fail(
      ExitCode::kEnvironment,
      fmt::format("{} has room for {} bytes of temporary files, but starting ranks takes {}",
                  folder, free, kLeast),
      "free some space there, or set TMPDIR to a local folder on another disk");
}

// mpirun keeps its sockets there, and what it tells the ranks.
Status check_temporary_folder() {
  const char* folder = ::getenv("TMPDIR");
  if (folder == nullptr || *folder == '\0') return check_room("/tmp");
  std::string probe = fmt::format("{}/ptrain-XXXXXX", folder);
  if (::mkdtemp(probe.data()) != nullptr) {
    ::rmdir(probe.c_str());
    return check_room(folder);
  }
  return fail(ExitCode::kEnvironment,
              fmt::format("temporary files cannot be made in {}, which TMPDIR names: {}", folder,
                          std::strerror(errno)),
              "set TMPDIR to a local folder that you can write, or unset it");
}

}  // namespace

Status check_environment(int num_ranks, int files_of_rank) {
  PTRAIN_CHECK(check_open_files(num_ranks, files_of_rank));
  PTRAIN_CHECK(check_size_of_files());
  return check_temporary_folder();
}

}  // namespace ptrain::start
