#include "cli/start_run.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <filesystem>

#include "cli/engine_module.h"
#include "cli/job_preflight.h"
#include "cli/local_copy.h"
#include "cli/output.h"
#include "cli/planning.h"
#include "core/base/hash.h"
#include "core/run/request.h"
#include "launcher/base/file.h"
#include "launcher/base/plan_file.h"
#include "launcher/preflight/preflight.h"
#include "launcher/start/choose.h"
#include "launcher/start/container.h"
#include "launcher/start/environment.h"
#include "launcher/supervise/event_log.h"
#include "launcher/supervise/narrate.h"
#include "launcher/supervise/supervisor.h"

namespace ptrain::cli {

// Local time, so that a person finds the run again.
std::string new_run_path(const std::string& directory, const std::string& name) {
  if (!directory.empty()) return absolute_path(directory);
  const auto now =
      fmt::localtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()));
  return absolute_path(fmt::format("runs/{}/{:%Y%m%d-%H%M%S}", name, now));
}

Status check_run_path(const std::string& directory, const std::string& name) {
  const std::string path = new_run_path(directory, name);
  return directory.empty() ? supervise::check_next_run(path) : supervise::check_new_run(path);
}

Result<std::unique_ptr<start::Backend>> backend_of(const run::Plan& plan) {
  const recipe::Cluster& cluster = plan.recipe.cluster;
  return start::choose_backend(run::num_nodes(plan), {cluster.launcher, cluster.interface});
}

namespace {

Status check_container_of(const recipe::Cluster& cluster) {
  if (!cluster.container.image.empty() && !cluster.local_copy.empty())
    return fail(ExitCode::kUsage, "cluster.local_copy: ranks in a container run what lies in it",
                "leave it or cluster.container out");
  const bool by_srun =
      cluster.launcher == recipe::RankLauncher::kSrun && start::usable_allocation();
  if (by_srun || !start::needs_srun(cluster.container)) return {};
  return fail(ExitCode::kUsage,
              "cluster.container: pyxis takes srun, and here ranks are started by mpirun",
              "set runtime: apptainer, or ask for a job of several nodes (--nodes)");
}

}  // namespace

Result<std::unique_ptr<start::Backend>> check_start(const run::Plan& plan) {
  PTRAIN_TRY(auto backend, backend_of(plan));
  PTRAIN_CHECK(check_container_of(plan.recipe.cluster));
  PTRAIN_CHECK(find_engine_of(plan));
  PTRAIN_CHECK(check_gpus_here(plan));
  PTRAIN_CHECK(
      start::check_environment(static_cast<int>(plan.ranks.size()), backend->files_of_rank()));
  return backend;
}

namespace {

Status write_files(const run::Directory& directory, const recipe::LoadedRecipe& loaded,
                   const run::Plan& plan) {
  PTRAIN_CHECK(publish_file(directory.recipe(), loaded.text));
  PTRAIN_CHECK(write_plan(directory.plan(), plan));
  supervise::EventLog log(directory);
  PTRAIN_CHECK(
      log.write(run::EventKind::kRunCreated, -1,
                {{"recipe_hash", loaded.hash}, {"recipe_text", hash128_hex(loaded.text)}}));
  return log.write(run::EventKind::kPlanChosen, -1, {{"layouts", supervise::layouts_text(plan)}});
}

}  // namespace

Result<run::Directory> write_run(const std::string& given, const recipe::LoadedRecipe& loaded,
                                 const run::Plan& plan) {
  const std::string path = new_run_path(given, plan.recipe.name);
  PTRAIN_TRY(const run::Directory directory,
             given.empty() ? supervise::create_next_run(path) : supervise::create_run(path));
  if (auto written = write_files(directory, loaded, plan); !written) {
    std::error_code ignored;  // what could not be written is told, not this
    std::filesystem::remove_all(directory.root, ignored);
    return tl::unexpected(std::move(written).error());
  }
  return directory;
}

namespace {

base::Command guard_command(const std::string& node, const std::string& job) {
  base::Command command = start::on_each_node({node});
  command.arguments.insert(
      command.arguments.end(),
      {"--output=none", "--error=none", own_path().value_or("ptrain"), "guard", "--job", job});
  return command;
}

void sweep_nodes(const std::vector<std::string>& nodes, const std::string& token) {
  constexpr std::chrono::seconds kLimit{5};
  if (nodes.empty()) return;
  base::Command command = start::on_each_node(nodes);
  command.arguments.insert(command.arguments.end(), {own_path().value_or("ptrain"), "sweep"});
  command.environment.emplace_back("PTRAIN_SWEEP_TOKEN", token);
  // A node that does not answer has nothing of ours to end.
  (void)base::run_to_end(command, kLimit);
}

void use_copies(supervise::Setup& setup) {
  auto copied = copy_to_nodes(setup.directory, setup.plan, setup.nodes);
  if (!copied)
    return say(fmt::format("warning: cluster.local_copy: {}; ranks start from {}",
                           copied.error().message, setup.worker));
  setup.worker = std::move(copied->worker);
  setup.before_worker = std::move(copied->before);
}

// To a shared disk that many write to.
double expected_save_s(const run::Plan& plan) {
  constexpr double kBytesPerSecond = 100e6, kOverhead = 2;
  return kOverhead + static_cast<double>(preflight::checkpoint_bytes(plan)) / kBytesPerSecond;
}

// What suits jobs of several nodes only.
void note_unused(const recipe::Cluster& cluster) {
  for (const auto& [field, value] :
       {std::pair("local_copy", &cluster.local_copy), std::pair("interface", &cluster.interface)})
    if (!value->empty())
      say(fmt::format("note: cluster.{} has no effect on ranks of one node", field));
}

}  // namespace

Result<ExitCode> start_run(const Startable& run, const supervise::RunLock&,
                           supervise::StopSignals& signals, bool by_hand) {
  const run::Directory& directory = run.directory;
  const run::Plan& plan = run.plan;
  PTRAIN_TRY(const std::string worker, own_path());
  supervise::Setup setup{directory, plan, run.backend, worker, signals, by_hand};
  const cluster::Allocation job = cluster::find_allocation();
  setup.job = run.task.empty() ? job.job : run.task;
  setup.next_task = run.next_task;
  setup.here = job.here;
  setup.expected_save_s = expected_save_s(plan);
  if (job.end_time > 0) setup.job_end = std::chrono::system_clock::from_time_t(job.end_time);
  if (const auto allocation = start::usable_allocation()) {
    PTRAIN_TRY(setup.nodes, cluster::allocated_nodes(*allocation));
    setup.replan = replan_for_nodes;
    setup.guard = guard_command;
    setup.sweep = sweep_nodes;
    if (!plan.recipe.cluster.local_copy.empty()) use_copies(setup);
    setup.preflight = [&directory](const run::Plan& planned) {
      return preflight_run(directory.root, planned);
    };
  }
  if (setup.nodes.empty()) note_unused(plan.recipe.cluster);
  return supervise::supervise(setup).code;
}

Result<std::string> start_command(const run::Directory& directory, const run::Plan& plan) {
  PTRAIN_TRY(const auto backend, backend_of(plan));
  PTRAIN_TRY(const std::string worker, own_path());
  const auto& shape = plan.shapes.front();
  const std::string request = directory.request(1);
  start::Launch launch{
      worker, request, "", shape.layout.num_ranks(), shape.threads, run::num_nodes(plan)};
  launch.on_gpus = engine_of(plan) == EngineKind::kGpu;
  return base::to_text(backend->command(launch), run::kControlToken);
}

}  // namespace ptrain::cli
