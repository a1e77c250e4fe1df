#include "cli/job_preflight.h"

#include "cli/engine_module.h"
#include "cli/output.h"
#include "launcher/cluster/gpus.h"
#include "launcher/preflight/gpu_health.h"
#include "launcher/preflight/node_check.h"
#include "launcher/supervise/places.h"

namespace ptrain::cli {

Result<std::vector<preflight::Finding>> look_at_nodes(const std::string& root,
                                                      const std::vector<std::string>& nodes,
                                                      const preflight::Needs& needs,
                                                      const start::Wanted& wanted) {
  preflight::Request request{"", "", "", {root}, nodes, needs.gpus > 0 || needs.gpus_too};
  PTRAIN_TRY(request.worker, own_path());
  PTRAIN_TRY(request.engine,
             find_engine(needs.gpus > 0 ? EngineKind::kGpu : EngineKind::kProcessor));
  PTRAIN_TRY(const auto backend, start::choose_backend(static_cast<int>(nodes.size()), wanted));
  PTRAIN_TRY(request.first_host, backend->control_host());
  return preflight::look_at_nodes(request, needs);
}

Status check_gpus_here(const run::Plan& plan) {
  preflight::Needs needs;
  needs.gpus = preflight::needs_of(plan).gpus;
  // Without the tool the engine finds out; nodes of a job are asked themselves.
  if (needs.gpus == 0 || !cluster::survey_gpus().asked || start::usable_allocation()) return {};
  preflight::NodeReport report;
  report.node = preflight::node_name();
  preflight::look_at_gpus(report);
  PTRAIN_TRY(const auto settled, preflight::settle(preflight::judge(needs, {report})));
  for (const auto& warning : settled.warnings) say("warning: " + warning);
  return {};
}

Result<preflight::Settled> preflight_run(const std::string& root, const run::Plan& plan) {
  if (plan.recipe.cluster.launcher == recipe::RankLauncher::kSrun)
    PTRAIN_CHECK(start::check_pmix_plugin());
  PTRAIN_TRY(const auto findings,
             look_at_nodes(root, supervise::nodes_of(plan), preflight::needs_of(plan),
                           {plan.recipe.cluster.launcher, plan.recipe.cluster.interface}));
  return preflight::settle(findings);
}

}  // namespace ptrain::cli
