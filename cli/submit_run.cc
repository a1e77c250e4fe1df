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
#include "launcher/submit/commands.h"
#include "launcher/submit/follow.h"
#include "launcher/submit/job.h"
#include "launcher/submit/job_file.h"
#include "launcher/submit/login_node.h"
#include "launcher/submit/rank_map.h"

namespace ptrain::cli {

namespace {

// Slurm's own words come first, then what we know of its reason.
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

Result<plan::Planning> plan_job(const RunArguments& arguments, const recipe::LoadedRecipe& loaded,
                                const submit::LoginNode& seen) {
  std::vector<std::string> notes;
  PTRAIN_TRY(const cluster::Cluster host, cluster::this_host());
  const auto nodes = submit::planned_nodes(seen, loaded.recipe.cluster.slurm,
                                           host.nodes.front().memory_bytes, notes);
  plan::Planning planning;
  if (arguments.plan.empty()) {
    PTRAIN_TRY(planning, plan_for_nodes(loaded, nodes));
  } else {
    PTRAIN_TRY(planning.plan, given_plan(arguments.plan, loaded));
  }
  planning.notes.insert(planning.notes.begin(), notes.begin(), notes.end());
  return planning;
}

// The run directory with everything that the job needs, or nothing.
Result<submit::JobFile> hand_over(const submit::Job& job, const std::string& recipe) {
  PTRAIN_CHECK(publish_file(job.directory.script(), submit::script_of(job)));
  PTRAIN_TRY(submit::JobFile file, submit::describe(job.directory, recipe));
  PTRAIN_CHECK(submit::write_job(job.directory, file));
  PTRAIN_TRY(file.job,
             submit::submit({submit::arguments_of(job), job.directory.script(), job.cluster.env}));
  PTRAIN_CHECK(submit::write_job(job.directory, file));
  return file;
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

Result<ExitCode> follow_job(const run::Directory& directory, bool detach,
                            supervise::StopSignals& signals) {
  PTRAIN_TRY(const submit::JobFile file, submit::read_job(directory));
  const std::string run = base::to_text({{directory.root}, {}});
  say(fmt::format("ptrain: job {} is submitted; its run directory is {}", file.job,
                  directory.root));
  const std::string ways = fmt::format(
      "  ptrain status {0}           how it stands\n  ptrain logs --follow {0}    what it does\n  "
      "ptrain stop {0}             ends it with a checkpoint",
      run);
  if (detach) {
    say(ways);
    return ExitCode::kDone;
  }
  say("  Ctrl-C leaves it alone and ends this view only");
  PTRAIN_TRY(const auto code, submit::follow(directory, signals));
  if (code) return *code;
  say(fmt::format("ptrain: job {} goes on\n{}", file.job, ways));
  return ExitCode::kDone;
}

Result<ExitCode> submit_run(const RunArguments& arguments, const recipe::LoadedRecipe& loaded) {
  const recipe::Slurm& slurm = loaded.recipe.cluster.slurm;
  submit::Job job{{new_run_path(arguments.directory, loaded.recipe.name)},
                  loaded.recipe.name,
                  "",
                  loaded.recipe.cluster};
  PTRAIN_TRY(job.program, own_path());
  PTRAIN_CHECK(submit::check_requests(job));
  PTRAIN_TRY(const submit::LoginNode seen, submit::probe(slurm));
  PTRAIN_CHECK(test(job, seen));
  PTRAIN_CHECK(submit::check(seen, slurm));
  PTRAIN_TRY(const plan::Planning planning, plan_job(arguments, loaded, seen));
  PTRAIN_CHECK(find_engine(engine_of(planning.plan)));
  for (const auto& note : planning.notes) say("note: " + note);
  job.ranks_per_node = submit::ranks_per_node(planning.plan);
  PTRAIN_TRY(const std::string estimate, test(job, seen));
  if (arguments.dry_run) {
    print(escaped(submit::script_of(job) + "\n" + submit::rank_map(planning.plan)));
    print_line(estimate);
    return ExitCode::kDone;
  }
  supervise::StopSignals signals;
  PTRAIN_TRY(job.directory, write_run(arguments.directory, loaded, planning.plan));
  const auto file = hand_over(job, absolute_path(arguments.recipe));
  if (!file) {
    std::filesystem::remove_all(job.directory.root);
    return refused(file.error(), seen, slurm);
  }
  return follow_job(job.directory, arguments.detach, signals);
}

}  // namespace ptrain::cli
