#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "cli/commands.h"
#include "cli/engine_module.h"
#include "cli/rank.h"
#include "cli/seats.h"
#include "core/run/directory.h"
#include "core/run/request.h"
#include "launcher/base/file.h"
#include "launcher/base/plan_file.h"

namespace ptrain::cli {

namespace {

constexpr std::size_t kMostRequest = std::size_t{1} << 20;

Result<run::Request> read_request(const std::string& argument) {
  if (argument.starts_with("{")) return run::request_from_json_text(argument);
  PTRAIN_TRY(const std::string text, await_file(argument, kMostRequest));
  return run::request_from_json_text(text);
}

// Without a plan: a probe, which measures the processor, or what the engine will complain about.
EngineKind prepare_engine(const run::Request& request, int rank) {
  const run::Directory directory{request.run_directory};
  const auto plan = read_plan(directory.attempt_plan(request.attempt));
  if (!plan) return EngineKind::kProcessor;
  take_seat(*plan, rank, request.control_host);
  return engine_of(*plan);
}

// From here on all output of this rank goes to its own log.
Status redirect_to(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0)
    return fail(ExitCode::kEnvironment,
                fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  ::dup2(file, STDOUT_FILENO);
  ::dup2(file, STDERR_FILENO);
  ::close(file);
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  return {};
}

// Before any thread is there: the control connection decides what TERM means.
void leave_term_to_control() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
}

}  // namespace

Result<ExitCode> cmd_worker(const WorkerArguments& arguments) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // no rank outlives its mpirun
  PTRAIN_TRY(const run::Request request, read_request(arguments.request));
  if (!request.control_host.empty()) leave_term_to_control();
  PTRAIN_TRY(const int rank, rank_from_environment());
  if (!request.run_directory.empty())  // a probe has none
    PTRAIN_CHECK(
        redirect_to(run::Directory{request.run_directory}.rank_log(request.attempt, rank)));
  PTRAIN_TRY(const int code, run_engine(request, prepare_engine(request, rank)));
  std::fflush(nullptr);
  ::_exit(code);  // taking libtorch apart costs 0.2 s (measured) and nobody needs it
}

}  // namespace ptrain::cli
