#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "cli/commands.h"
#include "cli/doctor.h"
#include "cli/engine_module.h"
#include "cli/output.h"
#include "core/run/request.h"
#include "launcher/base/file.h"
#include "launcher/preflight/gpu_health.h"
#include "launcher/preflight/node_check.h"
#include "launcher/preflight/ring.h"
#include "launcher/supervise/guard.h"
#include "launcher/supervise/processes.h"

namespace ptrain::cli {

namespace {

// At once: the step may be ended while what comes next is looked at.
void tell(const preflight::NodeReport& report) {
  print(preflight::to_line(report));
  std::fflush(stdout);
}

}  // namespace

Result<ExitCode> cmd_preflight_node(const PreflightNodeArguments& arguments) {
  const char* token = std::getenv(run::kControlToken);
  const std::string mark = token == nullptr ? "" : token;
  PTRAIN_TRY(const std::string binary, own_path());
  const preflight::NodeTask task{binary, arguments.engine, arguments.run, mark, arguments.plan};
  auto report = preflight::check_node(task);
  if (!arguments.hub.empty()) preflight::join_ring(arguments.hub, arguments.port, mark, report);
  tell(report);
  // What may take long comes later: nodes wait for each other before.
  if (arguments.gpus) {
    preflight::look_at_gpus(report);
    tell(report);
  }
  if (!arguments.run.empty()) {
    preflight::look_at_directory(task, kSeenWithin, report);
    tell(report);
  }
  return ExitCode::kDone;
}

// The token comes by the environment: command lines can be seen by everybody.
Result<ExitCode> cmd_sweep(const SweepArguments&) {
  const char* token = std::getenv("PTRAIN_SWEEP_TOKEN");
  if (token != nullptr && *token != '\0')
    supervise::kill_marked(fmt::format("{}={}", run::kControlToken, token));
  return ExitCode::kDone;
}

Result<ExitCode> cmd_guard(const GuardArguments& arguments) {
  PTRAIN_CHECK(supervise::guard_job(arguments.job));
  return ExitCode::kDone;
}

Result<ExitCode> cmd_doctor(const DoctorArguments&) {
  bool healthy = true;
  for (const Symptom& symptom : examine()) {
    healthy = healthy && symptom.kind != Symptom::Kind::kFailed;
    print_line(to_text(symptom));
  }
  return healthy ? ExitCode::kDone : ExitCode::kEnvironment;
}

}  // namespace ptrain::cli
