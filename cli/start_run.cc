#include "cli/start_run.h"

#include "cli/engine_module.h"
#include "launcher/start/mpirun.h"
#include "launcher/supervise/run_folder.h"
#include "launcher/supervise/supervisor.h"

namespace ptrain::cli {

Result<ExitCode> start_run(const run::Directory& directory, const run::Plan& plan) {
  PTRAIN_TRY(const auto lock, supervise::RunLock::take(directory));
  PTRAIN_TRY(const start::Mpirun mpirun, start::Mpirun::find());
  PTRAIN_CHECK(find_engine());
  PTRAIN_TRY(const std::string worker, own_path());
  PTRAIN_TRY(const run::Verdict verdict, supervise::supervise({directory, plan, mpirun, worker}));
  return verdict.code;
}

Result<std::string> start_command(const run::Directory& directory, const run::Plan& plan) {
  PTRAIN_TRY(const start::Mpirun mpirun, start::Mpirun::find());
  PTRAIN_TRY(const std::string worker, own_path());
  const auto& shape = plan.shapes.front();
  const std::string request = directory.attempt_folder(1) + "/request.json";
  return base::to_text(
      mpirun.command({worker, request, "", shape.layout.num_ranks(), shape.threads}),
      "PTRAIN_CONTROL_TOKEN");
}

}  // namespace ptrain::cli
