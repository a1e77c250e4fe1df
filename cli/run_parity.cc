#include "cli/run_parity.h"

#include <nlohmann/json.hpp>

#include "cli/engine_module.h"
#include "cli/output.h"
#include "cli/start_run.h"
#include "launcher/parity/plans.h"
#include "launcher/parity/text.h"

namespace ptrain::cli {

Result<ExitCode> run_parity(const RunArguments& arguments, const recipe::LoadedRecipe& loaded,
                            const run::Plan& plan) {
  PTRAIN_TRY(const auto backend, check_start(plan));
  PTRAIN_TRY(const std::string worker, own_path());
  for (std::size_t i = 0; i < plan.shapes.size(); ++i)  // before anything is written
    PTRAIN_CHECK(parity::check_memory(parity::on_one_rank(parity::with_one_micro_batch(plan, i))));
  supervise::StopSignals signals;
  PTRAIN_TRY(const run::Directory directory, write_run(arguments.directory, loaded, plan));
  PTRAIN_TRY(const auto lock, supervise::RunLock::take(directory));
  PTRAIN_TRY(const parity::Outcome outcome,
             parity::run_parity({directory, plan, *backend, worker, signals}));
  if (arguments.json) {
    print(parity::to_json(outcome).dump(1) + "\n");
  } else {
    for (const auto& shape : outcome.shapes) print_line(parity::to_text(shape));
  }
  if (outcome.verdict.code != ExitCode::kDone) say("ptrain: " + outcome.verdict.reason);
  return outcome.verdict.code;
}

}  // namespace ptrain::cli
