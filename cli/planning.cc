#include "cli/planning.h"

#include <cstdlib>
#include <filesystem>

#include "cli/probe.h"
#include "core/run/build_id.h"
#include "launcher/base/file.h"
#include "launcher/cluster/file.h"
#include "launcher/cluster/host.h"
#include "launcher/cluster/probe.h"

namespace ptrain::cli {

namespace {

// $XDG_CACHE_HOME/ptrain, else ~/.cache/ptrain; empty without either.
std::string cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return std::string(cache) + "/ptrain";
  const char* home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? std::string(home) + "/.cache/ptrain" : "";
}

// Beside the recipe, else among the clusters of this installation.
std::string cluster_path(const recipe::LoadedRecipe& loaded) {
  const auto beside = std::filesystem::path(loaded.folder) / loaded.recipe.cluster.file;
  if (is_regular_file(beside)) return beside;
  const auto installed = installed_path("configs/clusters/" + loaded.recipe.cluster.file);
  return installed.empty() ? beside.string() : installed;
}

Result<cluster::Cluster> probed_host(const recipe::Recipe& recipe, bool probe_again,
                                     std::vector<std::string>& notes) {
  PTRAIN_TRY(cluster::Cluster host, cluster::this_host());
  std::vector<std::string> told_later;
  PTRAIN_TRY(const plan::Placement placement, plan::place_ranks(recipe, host, told_later));
  const cluster::ProbeKey key{cluster::processor_name(), placement.num_ranks,
                              std::string(run::build_id())};
  host.figures = cluster::probed_figures({cache_folder(), key, mpirun_probe(), probe_again}, notes);
  return host;
}

}  // namespace

Result<plan::Planning> make_planning(const recipe::LoadedRecipe& loaded,
                                     const std::string& cluster_file, bool probe_again) {
  plan::PlanInput input;
  input.recipe = loaded.recipe;
  input.recipe_folder = loaded.folder;
  input.recipe_hash = loaded.hash;
  input.build = run::build_id();
  std::vector<std::string> notes;
  if (probe_again && (!cluster_file.empty() || !loaded.recipe.cluster.file.empty()))
    return fail(ExitCode::kUsage, "--probe measures this machine, but a cluster file is given",
                "leave --probe, or --cluster and cluster.file, out");
  if (!cluster_file.empty()) {
    PTRAIN_TRY(input.cluster, cluster::read_cluster(cluster_file));
  } else if (!loaded.recipe.cluster.file.empty()) {
    PTRAIN_TRY(input.cluster, cluster::read_cluster(cluster_path(loaded)));
  } else {
    PTRAIN_TRY(input.cluster, probed_host(loaded.recipe, probe_again, notes));
  }
  PTRAIN_TRY(plan::Planning planning, plan::plan_recipe(input));
  planning.notes.insert(planning.notes.begin(), notes.begin(), notes.end());
  return planning;
}

}  // namespace ptrain::cli
