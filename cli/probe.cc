#include "cli/probe.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>

#include "core/run/request.h"
#include "launcher/base/file.h"
#include "launcher/base/subprocess.h"
#include "launcher/start/choose.h"
#include "launcher/start/environment.h"

namespace ptrain::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kTimeLimit = std::chrono::seconds(30);
constexpr auto kPause = std::chrono::milliseconds(20);

// What failed first; launchers add pages of their own.
std::string first_line(const std::string& output) { return output.substr(0, output.find('\n')); }

Status run_limited(const base::Command& command) {
  PTRAIN_TRY(base::Subprocess process, base::Subprocess::start(command));
  const auto deadline = Clock::now() + kTimeLimit;
  std::string output;
  for (;;) {
    output += process.read_output();
    if (const auto status = process.poll()) {
      output += process.read_output();
      if (status->code == 0 && status->signal == 0) return {};
      return fail(ExitCode::kEnvironment, first_line(output));
    }
    if (Clock::now() > deadline)
      return fail(ExitCode::kEnvironment, fmt::format("not done after {} s", kTimeLimit.count()));
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

cluster::ProbeRunner start_probe() {
  return [](int num_ranks, const std::string& output) -> Status {
    PTRAIN_TRY(const auto backend, start::choose_backend(1));
    PTRAIN_CHECK(start::check_environment(num_ranks, backend->files_of_rank()));
    std::error_code error;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
    if (error) return fail(ExitCode::kEnvironment, "cannot find this program: " + error.message());
    run::Request request;
    request.mode = run::Mode::kProbe;
    request.output = output;
    const std::string request_file = output + ".request";
    PTRAIN_CHECK(publish_file(request_file, run::to_json_text(request)));
    const auto result =
        run_limited(backend->command({program.string(), request_file, "", num_ranks, 1}));
    std::filesystem::remove(request_file, error);
    return result;
  };
}

}  // namespace ptrain::cli
