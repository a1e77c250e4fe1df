#include "cli/submit_run.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/engine_module.h"
#include "cli/output.h"
#include "cli/planning.h"
#include "cli/start_run.h"
#include "launcher/base/file.h"
#include "launcher/base/subprocess.h"
#include "launcher/cluster/host.h"
#include "launcher/cluster/slurm.h"
#include "launcher/start/container.h"
#include "launcher/submit/commands.h"
#include "launcher/submit/follow.h"
#include "launcher/submit/job_file.h"
#include "launcher/submit/rank_map.h"
#include "launcher/submit/shared_folder.h"

namespace ptrain::cli {

namespace {

tl::unexpected<Error> refused(Error error, const submit::LoginNode& seen,
                              const recipe::Slurm& slurm) {
  error.hint = submit::explanation(seen, slurm, error.message);
  return tl::unexpected(std::move(error));
}

Result<std::string> test(const submit::Job& job, const submit::LoginNode& seen) {
  auto answer = submit::test({submit::arguments_of(job), "", job.cluster.env});
  if (answer) return answer;
  return refused(answer.error(), seen, job.cluster.slurm);
}

// The given plan, or one for the nodes that the job gets.
Result<run::Plan> plan_of(const RunArguments& arguments, const recipe::LoadedRecipe& loaded,
                          const submit::LoginNode& seen) {
  if (!arguments.plan.empty()) return given_plan(arguments.plan, loaded);
  PTRAIN_TRY(plan::Planning planning, plan_job(loaded, seen));
  for (const auto& note : planning.notes) say("note: " + note);
  return std::move(planning.plan);
}

std::string ways_back(const run::Directory& directory) {
  return fmt::format(
      "  ptrain status {0}           how it stands\n"
      "  ptrain logs --follow {0}    what it does\n"
      "  ptrain stop {0}             ends it, with a checkpoint",
      base::to_text({{directory.root}, {}}));
}

Result<ExitCode> follow_job(const submit::JobFile& file, const HandOver& what,
                            supervise::StopSignals& signals) {
  const run::Directory& directory = what.job.directory;
  say(fmt::format("ptrain: job {} is submitted; its run directory is {}", file.job,
                  directory.root));
  if (what.detach) {
    say(ways_back(directory));
    return ExitCode::kDone;
  }
  say("  Ctrl-C ends this view only, not the job");
  PTRAIN_TRY(const auto code, submit::follow(directory, signals));
  if (code) return *code;
  say(fmt::format("ptrain: job {} goes on", file.job));
  say(ways_back(directory));
  return ExitCode::kDone;
}

}  // namespace

bool is_submitted(const recipe::Cluster& cluster) {
  return submit::asks_for_slurm(cluster) && cluster::find_allocation().job.empty() &&
         submit::has_slurm();
}

std::string why_not_submitted() {
  const auto allocation = cluster::find_allocation();
  if (!allocation.job.empty())
    return fmt::format("this is inside Slurm job {}, whose nodes are used", allocation.job);
  return submit::has_slurm() ? "no job is asked for (--nodes)" : "sbatch is not in PATH";
}

Status check_started_here(const std::vector<std::string>& options, bool detach,
                          const recipe::Cluster& cluster, const std::string& why) {
  if (!options.empty() || detach)
    return fail(ExitCode::kUsage,
                fmt::format("options of Slurm (--nodes, --partition, --detach, ...) have no effect "
                            "here: {}",
                            why),
                "leave them out to train here");
  if (submit::asks_for_slurm(cluster) || !cluster.setup.empty() || !cluster.env.empty())
    say("note: cluster.slurm, setup and env of the recipe have no effect here: " + why);
  return {};
}

Result<submit::Job> job_for(const std::string& directory, const recipe::Recipe& recipe) {
  submit::Job job{{directory}, recipe.name, "", recipe.cluster};
  PTRAIN_TRY(job.program, own_path());
  PTRAIN_CHECK(submit::check_requests(job));
  PTRAIN_CHECK(submit::check_shared(directory, job.program));
  return job;
}

Result<submit::LoginNode> look_around(const submit::Job& job) {
  PTRAIN_TRY(submit::LoginNode seen, submit::probe(job.cluster.slurm));
  PTRAIN_CHECK(start::check_container(job.cluster.container, seen.srun_help));
  PTRAIN_CHECK(test(job, seen));
  PTRAIN_CHECK(submit::check(seen, job.cluster.slurm));
  PTRAIN_CHECK(submit::check_plugins(seen, job.cluster));
  if (const auto wait = submit::wait_of(seen, job.cluster.slurm); !wait.empty())
    say("note: " + wait);
  return seen;
}

Result<plan::Planning> plan_job(const recipe::LoadedRecipe& loaded, const submit::LoginNode& seen) {
  std::vector<std::string> notes;
  PTRAIN_TRY(const cluster::Cluster host, cluster::this_host());
  const auto nodes = submit::planned_nodes(seen, loaded.recipe.cluster.slurm,
                                           host.nodes.front().memory_bytes, notes);
  PTRAIN_TRY(plan::Planning planning, plan_for_nodes(loaded, nodes));
  planning.notes.insert(planning.notes.begin(), notes.begin(), notes.end());
  return planning;
}

Result<ExitCode> hand_over(const HandOver& what, const submit::LoginNode& seen,
                           supervise::StopSignals& signals) {
  const submit::Job& job = what.job;
  const auto earlier = submit::read_job(job.directory);
  PTRAIN_CHECK(publish_file(job.directory.script(), submit::script_of(job)));
  PTRAIN_TRY(submit::JobFile file, submit::describe(job.directory, what.recipe));
  file.num_tasks = submit::num_tasks(job.cluster.slurm);
  PTRAIN_CHECK(submit::write_job(job.directory, file));
  auto number =
      submit::submit({submit::arguments_of(job), job.directory.script(), job.cluster.env});
  if (!number) {
    if (earlier) PTRAIN_CHECK(submit::write_job(job.directory, *earlier));
    return refused(number.error(), seen, job.cluster.slurm);
  }
  PTRAIN_CHECK(submit::set_number(job.directory, *number));
  file.job = *number;
  return follow_job(file, what, signals);
}

Result<ExitCode> submit_run(const RunArguments& arguments, const recipe::LoadedRecipe& loaded,
                            const run::Origin& origin) {
  PTRAIN_TRY(submit::Job job,
             job_for(new_run_path(arguments.directory, loaded.recipe.name), loaded.recipe));
  PTRAIN_TRY(const submit::LoginNode seen, look_around(job));
  PTRAIN_TRY(run::Plan plan, plan_of(arguments, loaded, seen));
  plan.origin = origin;
  PTRAIN_CHECK(submit::check_gpus(plan, job.cluster.slurm.gpus_per_node));
  PTRAIN_CHECK(find_engine_of(plan));
  job.ranks_per_node = submit::ranks_per_node(plan);
  PTRAIN_TRY(const std::string estimate, test(job, seen));
  if (arguments.dry_run) {
    print(escaped(submit::script_of(job) + "\n" + submit::rank_map(plan)));
    print_line(estimate);
    return ExitCode::kDone;
  }
  supervise::StopSignals signals;
  PTRAIN_TRY(job.directory, write_run(arguments.directory, loaded, plan));
  auto code = hand_over({job, absolute_path(arguments.recipe), arguments.detach}, seen, signals);
  if (!code && !submit::has_job(job.directory)) std::filesystem::remove_all(job.directory.root);
  return code;
}

}  // namespace ptrain::cli
