#include "launcher/start/environment.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
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

// mpirun keeps its sockets there.
Status check_temporary_folder() {
  const char* folder = ::getenv("TMPDIR");
  if (folder == nullptr || *folder == '\0') return {};
  std::string probe = fmt::format("{}/ptrain-XXXXXX", folder);
  if (::mkdtemp(probe.data()) != nullptr) {
    ::rmdir(probe.c_str());
    return {};
  }
  return fail(ExitCode::kEnvironment,
              fmt::format("temporary files cannot be made in {}, which TMPDIR names: {}", folder,
                          std::strerror(errno)),
              "set TMPDIR to a local folder that you can write, or unset it");
}

}  // namespace

Status check_environment(int num_ranks, int files_of_rank) {
  PTRAIN_CHECK(check_open_files(num_ranks, files_of_rank));
  return check_temporary_folder();
}

}  // namespace ptrain::start
