#include "launcher/supervise/notify.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "launcher/base/find_program.h"
#include "launcher/base/subprocess.h"
#include "launcher/supervise/report.h"

namespace ptrain::supervise {

namespace {

constexpr std::chrono::seconds kLimit{30};

tl::unexpected<Error> failed(const std::string& command, const std::string& how) {
  return fail(ExitCode::kEnvironment, fmt::format("failure.notify: {} {}", command, how));
}

std::string program_of(const std::string& name) {
  return name.find('/') != std::string::npos ? name : base::find_program(name);
}

}  // namespace

Status notify(const std::vector<std::string>& command, const run::Directory& directory,
              const run::Verdict& verdict) {
  if (command.empty()) return {};
  base::Command all{command,
                    {{"PTRAIN_RUN", directory.root},
                     {"PTRAIN_CODE", std::to_string(static_cast<int>(verdict.code))},
                     {"PTRAIN_VERDICT", verdict_line(verdict)}}};
  all.arguments[0] = program_of(command[0]);
  if (all.arguments[0].empty()) return failed(command[0], "is not in PATH");
  PTRAIN_TRY(base::Subprocess process, base::Subprocess::start(all));
  const auto end = std::chrono::steady_clock::now() + kLimit;
  std::string output;
  for (;;) {
    output += process.read_output();
    if (const auto status = process.poll()) {
      if (*status == base::ExitStatus{}) return {};
      output += process.read_output();
      return failed(command[0], status->signal != 0
                                    ? fmt::format("was killed by signal {}", status->signal)
                                    : fmt::format("ended with {}: {}", status->code, output));
    }
    if (std::chrono::steady_clock::now() > end) return failed(command[0], "took too long");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace ptrain::supervise
