#include "cli/planning.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "cli/engine_module.h"
#include "cli/probe.h"
#include "core/base/cache_folder.h"
#include "core/data/lengths.h"
#include "core/recipe/source_weights.h"
#include "core/run/build_id.h"
#include "launcher/base/file.h"
#include "launcher/base/plan_file.h"
#include "launcher/cluster/file.h"
#include "launcher/cluster/gpus.h"
#include "launcher/cluster/host.h"
#include "launcher/cluster/probe.h"
#include "launcher/recipe/schedule_files.h"
#include "launcher/resume/differences.h"
#include "launcher/start/choose.h"

namespace ptrain::cli {

namespace {

std::string user_cache() {
  return cache_folder(std::getenv("XDG_CACHE_HOME"), std::getenv("HOME"));
}

// In the folder, else among the clusters of this installation.
std::string cluster_path(const std::string& folder, const std::string& file) {
  const std::string here = (std::filesystem::path(folder) / file).string();
  if (is_regular_file(here)) return here;
  const auto installed = installed_path("configs/clusters/" + file);
  return installed.empty() ? here : installed;
}

// GPUs that this build cannot use count as not there.
void drop_useless_gpus(cluster::Cluster& host, std::vector<std::string>& notes) {
  cluster::Node& node = host.nodes.front();
  if (node.num_gpus == 0 || find_engine(EngineKind::kGpu)) return;
  notes.push_back(
      fmt::format("{} GPUs of this machine stay idle: this ptrain is built without CUDA (CMake "
                  "preset `cuda`)",
                  node.num_gpus));
  node.num_gpus = 0;
  host.figures = cluster::default_figures();
}

// The nodes of the Slurm job that we are in, else this machine.
Result<cluster::Cluster> machines_here(std::vector<std::string>& notes) {
  if (const auto allocation = start::usable_allocation()) {
    if (allocation->has_gpus)
      notes.push_back(
          "GPUs of this Slurm job stay idle: on several nodes ranks run on those that a cluster "
          "file names (--cluster, cluster.file)");
    return cluster::allocated_cluster(*allocation);
  }
  PTRAIN_TRY(cluster::Cluster host, cluster::this_host());
  if (const auto complaint = cluster::survey_gpus().complaint; !complaint.empty())
    notes.push_back(
        fmt::format("{}; ranks are planned for {}", complaint,
                    host.nodes.front().num_gpus > 0 ? "the GPUs that it lists" : "cores"));
  drop_useless_gpus(host, notes);
  return host;
}

// What figures of these machines are kept under: the nodes of a Slurm cluster are taken as alike.
std::string processor_of(const cluster::Cluster& cluster) {
  return start::usable_allocation() ? "nodes of " + cluster.name : cluster::processor_name();
}

// With an empty runner only what was measured before is used.
Result<cluster::Cluster> probed_host(recipe::Recipe& recipe, cluster::ProbeRunner runner,
                                     bool probe_again, std::vector<std::string>& notes) {
  PTRAIN_TRY(cluster::Cluster host, machines_here(notes));
  recipe.cluster.nodes = static_cast<int>(host.nodes.size());
  if (host.nodes.front().num_gpus > 0) {
    if (!probe_again) return host;
    return fail(ExitCode::kUsage,
                "--probe measures processors, but ranks run on this machine's GPUs",
                "leave --probe out, or give measured figures in a cluster file");
  }
  std::vector<std::string> told_later;
  PTRAIN_TRY(const plan::Placement placement, plan::place_ranks(recipe, host, told_later));
  const cluster::ProbeKey key{processor_of(host), placement.ranks_per_node,
                              std::string(run::build_id())};
  host.figures =
      cluster::probed_figures({user_cache(), key, std::move(runner), probe_again}, notes);
  return host;
}

void note_unused_nodes(const cluster::Cluster& file, int used, std::vector<std::string>& notes) {
  const int there = static_cast<int>(file.nodes.size());
  if (used >= there) return;
  notes.push_back(fmt::format(
      "the cluster file '{}' has {} nodes, and {} planned for: cluster.slurm.nodes, or the Slurm "
      "job that this runs in, says how many",
      file.name, there, used == 1 ? "1 is" : fmt::format("{} are", used)));
}

// All nodes that can be used are: sets the recipe's number of them.
Result<cluster::Cluster> cluster_of(recipe::LoadedRecipe& loaded, const std::string& cluster_file,
                                    bool probe_again, std::vector<std::string>& notes) {
  const std::string& of_recipe = loaded.recipe.cluster.file;
  if (cluster_file.empty() && of_recipe.empty())
    return probed_host(loaded.recipe, start_probe(), probe_again, notes);
  if (probe_again)
    return fail(ExitCode::kUsage, "--probe measures this machine, but a cluster file is given",
                "leave --probe, or --cluster and cluster.file, out");
  const std::string path = cluster_file.empty() ? cluster_path(loaded.folder, of_recipe)
                                                : cluster_path("", cluster_file);
  PTRAIN_TRY(cluster::Cluster cluster, cluster::read_cluster(path));
  const int in_file = static_cast<int>(cluster.nodes.size());
  if (const auto allocation = start::usable_allocation()) {
    loaded.recipe.cluster.nodes = std::clamp(allocation->num_nodes, 1, in_file);
    if (allocation->num_nodes > in_file)
      notes.push_back(
          fmt::format("this Slurm job has {} nodes, {} more than the cluster file '{}': "
                      "these stay idle",
                      allocation->num_nodes, allocation->num_nodes - in_file, cluster.name));
  } else if (const int wanted = loaded.recipe.cluster.slurm.nodes) {
    loaded.recipe.cluster.nodes = wanted;  // of a job that is still to come
  }
  note_unused_nodes(cluster, loaded.recipe.cluster.nodes, notes);
  return cluster;
}

plan::LengthHistogram weighted(const data::DocumentLengths& lengths,
                               const std::vector<double>& weights) {
  plan::LengthHistogram out;
  for (std::size_t source = 0; source < lengths.sources.size(); ++source)
    for (const auto& [length, documents] : lengths.sources[source])
      out.emplace_back(length, static_cast<double>(documents) *
                                   (source < weights.size() ? weights[source] : 1.0));
  std::ranges::sort(out);
  return out;
}

// The lengths that the engine left when it last indexed the recipe's texts.
void read_lengths(const recipe::LoadedRecipe& loaded, plan::PlanInput& input,
                  std::vector<std::string>& notes) {
  const recipe::Data& data = loaded.recipe.data;
  const std::string folder = data::index_folder(data, loaded.folder, user_cache());
  const std::string path = folder + "/" + data::lengths_name(data, loaded.folder);
  input.no_lengths = "no token index of its texts has been made (`ptrain data` makes it)";
  if (folder.empty() || !is_regular_file(path)) return;
  const auto lengths = read_file(path, data::kMostLengthsBytes).and_then(data::lengths_from_text);
  if (lengths) {
    input.lengths = weighted(*lengths, recipe::source_weights(data));
    if (!input.lengths.empty()) return;
  }
  const std::string why = lengths ? "it names no document" : lengths.error().message;
  input.no_lengths = "the lengths kept of them cannot be used";
  notes.push_back(
      fmt::format("{} is not used: {}; remove it and the next run or `ptrain data` "
                  "writes it again",
                  path, why));
}

Result<plan::Planning> plan_on(const recipe::LoadedRecipe& loaded, const cluster::Cluster& cluster,
                               const std::vector<std::string>& earlier) {
  std::vector<std::string> notes = earlier;
  plan::PlanInput input;
  input.cluster = cluster;
  input.recipe = loaded.recipe;
  input.recipe_folder = loaded.folder;
  input.recipe_hash = loaded.hash;
  input.build = run::build_id();
  read_lengths(loaded, input, notes);
  PTRAIN_TRY(input.schedules, recipe::read_schedule_files(loaded.recipe, loaded.folder));
  PTRAIN_TRY(plan::Planning planning, plan::plan_recipe(input));
  planning.notes.insert(planning.notes.begin(), notes.begin(), notes.end());
  return planning;
}

}  // namespace

Result<plan::Planning> make_planning(const recipe::LoadedRecipe& given,
                                     const std::string& cluster_file, bool probe_again) {
  std::vector<std::string> notes = given.notes;
  recipe::LoadedRecipe loaded = given;
  PTRAIN_TRY(const cluster::Cluster cluster, cluster_of(loaded, cluster_file, probe_again, notes));
  return plan_on(loaded, cluster, notes);
}

Result<plan::Planning> plan_for_nodes(const recipe::LoadedRecipe& given,
                                      const cluster::Cluster& nodes) {
  std::vector<std::string> notes = given.notes;
  recipe::LoadedRecipe loaded = given;
  loaded.recipe.cluster.nodes = static_cast<int>(nodes.nodes.size());
  if (!loaded.recipe.cluster.file.empty()) {
    PTRAIN_TRY(const cluster::Cluster file,
               cluster::read_cluster(cluster_path(loaded.folder, loaded.recipe.cluster.file)));
    note_unused_nodes(file, loaded.recipe.cluster.nodes, notes);
    return plan_on(loaded, file, notes);
  }
  cluster::Cluster measured = nodes;
  std::vector<std::string> told_later;
  PTRAIN_TRY(const plan::Placement placement, plan::place_ranks(loaded.recipe, nodes, told_later));
  const cluster::ProbeKey key{"nodes of " + nodes.name, placement.ranks_per_node,
                              std::string(run::build_id())};
  measured.figures = cluster::probed_figures({user_cache(), key, nullptr, false}, notes);
  return plan_on(loaded, measured, notes);
}

// Values are compared, not the plan's hash, which another build may have made in another way.
Result<run::Plan> given_plan(const std::string& path, const recipe::LoadedRecipe& loaded) {
  PTRAIN_TRY(run::Plan plan, read_plan(path));
  std::string others;
  for (const auto& difference : resume::differences(plan.recipe, loaded.recipe))
    if (!difference.field.starts_with("cluster.slurm."))
      others += "\n  " + resume::to_string(difference);
  if (!others.empty())
    return fail(ExitCode::kUsage,
                fmt::format("the plan {} was made for another recipe:{}", path, others),
                "give the plan.json of a run of this recipe, or leave --plan out");
  plan.build = run::build_id();
  plan.recipe = loaded.recipe;  // also in what no plan rests on
  plan.recipe_folder = loaded.folder;
  plan.recipe_hash = loaded.hash;
  plan.origin = {};
  return plan;
}

Result<plan::PlanInput> kept_input(const run::Plan& plan) {
  recipe::LoadedRecipe loaded;
  loaded.recipe = plan.recipe;
  loaded.folder = plan.recipe_folder;
  plan::PlanInput input;
  input.recipe = plan.recipe;
  input.recipe_folder = plan.recipe_folder;
  std::vector<std::string> notes;  // for one who plans
  if (plan.recipe.cluster.file.empty()) {
    PTRAIN_TRY(input.cluster, probed_host(input.recipe, nullptr, false, notes));
  } else {
    PTRAIN_TRY(input.cluster,
               cluster::read_cluster(cluster_path(loaded.folder, loaded.recipe.cluster.file)));
  }
  if (input.cluster.name != plan.cluster)
    return fail(
        ExitCode::kUsage,
        fmt::format("the run was planned for {}, this is {}", plan.cluster, input.cluster.name),
        "make the report where the run was planned");
  read_lengths(loaded, input, notes);
  return input;
}

Result<run::Plan> replan_for_nodes(const run::Plan& plan, const std::vector<std::string>& nodes) {
  PTRAIN_TRY(cluster::Cluster cluster, cluster::allocated_cluster(cluster::find_allocation()));
  std::erase_if(cluster.nodes, [&](const cluster::Node& node) {
    return std::ranges::find(nodes, node.name) == nodes.end();
  });
  const recipe::LoadedRecipe loaded{plan.recipe, plan.recipe_folder, "", plan.recipe_hash, {}};
  PTRAIN_TRY(plan::Planning planning, plan_for_nodes(loaded, cluster));
  planning.plan.origin = plan.origin;
  return std::move(planning.plan);
}

}  // namespace ptrain::cli
