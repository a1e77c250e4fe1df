#include "cli/job_preflight.h"

#include "cli/engine_module.h"
#include "launcher/preflight/gpu_health.h"
#include "launcher/supervise/places.h"

namespace ptrain::cli {

Result<std::vector<preflight::Finding>> look_at_nodes(const std::string& root,
                                                      const std::vector<std::string>& nodes,
                                                      const preflight::Needs& needs,
                                                      const start::Wanted& wanted) {
  preflight::Request request{"", "", "", {root}, nodes, needs.gpus > 0};
  PTRAIN_TRY(request.worker, own_path());
  PTRAIN_TRY(request.engine,
             find_engine(needs.gpus > 0 ? EngineKind::kGpu : EngineKind::kProcessor));
  PTRAIN_TRY(const auto backend, start::choose_backend(static_cast<int>(nodes.size()), wanted));
  PTRAIN_TRY(request.first_host, backend->control_host());
  return preflight::look_at_nodes(request, needs);
}

Status check_gpus_here(const run::Plan& plan) {
  if (preflight::needs_of(plan).gpus == 0) return {};
  const std::string complaint = preflight::gpu_complaint();
  if (complaint.empty()) return {};
  return fail(ExitCode::kEnvironment, complaint, "have it looked at; nvidia-smi says more");
}

Result<std::vector<std::string>> preflight_run(const std::string& root, const run::Plan& plan) {
  if (plan.recipe.cluster.launcher == recipe::RankLauncher::kSrun)
    PTRAIN_CHECK(start::check_pmix_plugin());
  PTRAIN_TRY(const auto findings,
             look_at_nodes(root, supervise::nodes_of(plan), preflight::needs_of(plan),
                           {plan.recipe.cluster.launcher, plan.recipe.cluster.interface}));
  return preflight::settle(findings);
}

}  // namespace ptrain::cli
