// The lists, the sections that may be `auto`, and the keys that later versions bring.
#include "core/recipe/field.h"

namespace ptrain::recipe {
namespace {

void set_parallel(Parallel& parallel, SectionState state) {
  parallel.automatic = state == SectionState::kAutomatic;
}

SectionState state_of(const Parallel& parallel) {
  return parallel.automatic ? SectionState::kAutomatic : SectionState::kFields;
}

void set_shape_parallel(Recipe& recipe, std::size_t entry, SectionState state) {
  set_parallel(recipe.shapes[entry].parallel.emplace(), state);
}

SectionState shape_parallel_state(const Recipe& recipe, std::size_t entry) {
  const auto& parallel = recipe.shapes[entry].parallel;
  return parallel ? state_of(*parallel) : SectionState::kAbsent;
}

void reserve_parallel(std::vector<Reserved>& all, const std::string& prefix) {
  all.insert(all.end(), {
                            {prefix + "order", "another order of ranks"},
                            {prefix + "memory", "a memory limit"},
                        });
}

std::vector<Reserved> make_reserved() {
  std::vector<Reserved> all;
  reserve_parallel(all, "parallel.");
  reserve_parallel(all, "shapes[].parallel.");
  all.insert(all.end(), {
                            {"data.validation[].weight", "weighting of sources", "1"},
                            {"optimizer.no_decay", "a list of parameters without weight decay"},
                            {"cluster.nodes", "choosing fewer nodes than the Slurm job has", "1"},
                            {"cluster.links", "a description of links"},
                            {"replan", "planning again during a run"},
                        });
  return all;
}

// `texts` finds the list in a recipe, const or not.
template <class Texts>
List text_list(std::string path, std::string description, Texts texts) {
  return {std::move(path), std::move(description),
          [texts](const Recipe& recipe) { return texts(recipe).size(); },
          [texts](Recipe& recipe, std::size_t size) { texts(recipe).resize(size); }};
}

}  // namespace

const std::vector<List>& lists() {
  static const std::vector<List> all = {
      {"data.train", "Texts to train on.", [](const Recipe& r) { return r.data.train.size(); },
       [](Recipe& r, std::size_t n) { r.data.train.resize(n); }},
      {"data.validation", "Texts to validate on.",
       [](const Recipe& r) { return r.data.validation.size(); },
       [](Recipe& r, std::size_t n) { r.data.validation.resize(n); }},
      {"shapes", "Training shapes, one after the other, each with a plan of its own.",
       [](const Recipe& r) { return r.shapes.size(); },
       [](Recipe& r, std::size_t n) { r.shapes.resize(n); }},
      text_list(
          "cluster.slurm.extra",
          "Further arguments of sbatch, each as one argument; they win over ptrain's own.",
          [](auto& r) -> auto& { return r.cluster.slurm.extra; }),
      text_list(
          "cluster.setup",
          "Lines of shell that a Slurm job runs before training; one that fails ends it.",
          [](auto& r) -> auto& { return r.cluster.setup; }),
      text_list(
          "cluster.env",
          "Names of the environment variables that a Slurm job gets from where it is "
          "submitted; none named: all.",
          [](auto& r) -> auto& { return r.cluster.env; }),
      text_list(
          "cluster.container.mounts", "Folders that ranks see inside a container.",
          [](auto& r) -> auto& { return r.cluster.container.mounts; }),
      text_list(
          "failure.notify",
          "A command with its arguments, run without a shell when the run ends; it finds the "
          "verdict's line in PTRAIN_VERDICT and the run directory in PTRAIN_RUN.",
          [](auto& r) -> auto& { return r.failure.notify; }),
  };
  return all;
}

const std::vector<AutoSection>& auto_sections() {
  static const std::vector<AutoSection> all = {
      {"parallel",
       [](Recipe& r, std::size_t, SectionState state) { set_parallel(r.parallel, state); },
       [](const Recipe& r, std::size_t) { return state_of(r.parallel); }},
      {"shapes[].parallel", set_shape_parallel, shape_parallel_state},
  };
  return all;
}

const std::vector<Reserved>& reserved_keys() {
  static const std::vector<Reserved> all = make_reserved();
  return all;
}

}  // namespace ptrain::recipe
