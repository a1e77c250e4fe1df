#include "tests/random/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <span>
#include <string_view>

#include "core/program/memory.h"
#include "tests/random/experiment.h"
#include "tests/support/small_model.h"

namespace ptrain::random {
namespace {

using parity::Trajectory;
using program::MemoryClass;
using Faults = std::vector<std::string>;

// Whether products of some stages are rounded, by each rank in parts of its own.
bool rounds(const Case& one) { return one.stage_dtype.find("bf16") != std::string::npos; }

double tolerance_of(const Case& one) {
  return one.precision == "fp64" ? 1e-9 : rounds(one) ? 5e-4 : 1e-5;
}

void compare(std::string_view what, std::span<const double> run, std::span<const double> truth,
             double tolerance, Faults& faults) {
  if (run.size() != truth.size()) faults.push_back(fmt::format("{}: not of all steps", what));
  for (std::size_t i = 0; i < std::min(run.size(), truth.size()); ++i) {
    const double distance = std::abs(run[i] - truth[i]);
    if (!(distance <= tolerance * std::abs(truth[i])))
      faults.push_back(fmt::format("{} of step {} is {:.17g}, on one rank {:.17g}: apart by {:.1e}",
                                   what, i + 1, run[i], truth[i], distance / std::abs(truth[i])));
  }
}

// Queries see all keys moved alike, so that the bias of keys has no gradient but rounding.
bool is_rounding(const Case& one, const std::string& name) {
  return one.family == "gpt2" && name.ends_with("c_attn.bias");
}

// What keys and queries have in common hardly moves attention: such gradients are what is left of
// sums that cancel, of which fp32 keeps fewer digits.
double tolerance_of_gradient(const Case& one, std::string_view name) {
  if (rounds(one)) return 2e-2;
  const bool cancels = name.ends_with("k_proj.bias") || name.find("k_norm") != name.npos ||
                       name.find("q_norm") != name.npos;
  return cancels && one.precision == "fp32" ? 1e-4 : tolerance_of(one);
}

void compare_gradients(const Case& one, const Trajectory& run, const Trajectory& truth,
                       Faults& faults) {
  if (run.first_gradients.size() != truth.first_gradients.size())
    faults.push_back("gradients: not of all parameters");
  for (const auto& [name, gradient] : truth.first_gradients) {
    const auto found = run.first_gradients.find(name);
    if (found == run.first_gradients.end()) continue;
    const double distance = parity::relative_distance(found->second, gradient);
    if (!(distance <= tolerance_of_gradient(one, name)))
      faults.push_back(fmt::format("gradient of {}: apart by {:.1e}", name, distance));
  }
}

// design.md: within 1e-6 of the way that they may have gone.
void compare_parameters(const Case& one, const Trajectory& run, const Trajectory& truth,
                        Faults& faults) {
  const double bound = 1e-6 * 1e-2 * static_cast<double>(one.steps);
  for (const auto& [name, parameter] : truth.final_parameters) {
    const auto found = run.final_parameters.find(name);
    if (found == run.final_parameters.end() || is_rounding(one, name)) continue;
    double most = 0;
    for (std::size_t i = 0; i < parameter.size(); ++i)
      most = std::max(most, std::abs(found->second[i] - parameter[i]));
    if (!(most <= bound))
      faults.push_back(fmt::format("parameter {}: apart by {:.1e} of {:.1e}", name, most, bound));
  }
}

// What is predicted is what can be taken at most: packed rows have shorter documents than the whole
// ones that scratch is predicted for, a ring may cut whole ones so that they need less than others,
// experts may get fewer tokens than they have room for, and a rank may own none of the largest
// matrices that Muon works on.
bool may_be_less(const Case& one, MemoryClass memory_class) {
  const bool drops = support::has_experts(one.family) && one.capacity_percent > 0;
  const bool varies = drops || one.ep > 1;
  if (memory_class == MemoryClass::kStash) return varies;
  return memory_class == MemoryClass::kTemporary &&
         (varies || one.packing != "whole_document" || one.ring > 1 || one.optimizer == "muon");
}

// Of one rank.
struct RankBytes {
  int rank = 0;
  const program::BytesByClass &measured, &predicted;
};

void compare_bytes(const Case& one, const RankBytes& bytes, Faults& faults) {
  for (int i = 0; i < program::kNumMemoryClasses; ++i) {
    const auto memory_class = static_cast<MemoryClass>(i);
    if (memory_class == MemoryClass::kCheckpoint || memory_class == MemoryClass::kRuntime) continue;
    const auto measured = bytes.measured[static_cast<std::size_t>(i)].value;
    const auto predicted = bytes.predicted[static_cast<std::size_t>(i)].value;
    if (measured == predicted) continue;
    if (measured < predicted && may_be_less(one, memory_class)) continue;
    faults.push_back(fmt::format("{} bytes of {} on rank {}, but {} were predicted", measured,
                                 program::to_string(memory_class), bytes.rank, predicted));
  }
}

// In fp32 those of the first step: later ones follow rounded parameters.
std::span<const double> norms(const Case& one, const Trajectory& run) {
  const std::span<const double> all = run.grad_norms;
  return one.precision == "fp32" ? all.first(1) : all;
}

void compare_all(const Case& one, const Trajectory& run, const Trajectory& truth, Faults& faults) {
  const double tolerance = tolerance_of(one);
  if (run.initial_parameters != truth.initial_parameters)
    faults.push_back("initial parameters differ");
  compare("loss", run.losses, truth.losses, tolerance, faults);
  compare("gradient norm", norms(one, run), norms(one, truth), tolerance, faults);
  compare_gradients(one, run, truth, faults);
  if (one.precision == "fp64") compare_parameters(one, run, truth, faults);
  for (std::size_t rank = 0; rank < run.peak_bytes.size(); ++rank)
    compare_bytes(one, {static_cast<int>(rank), run.peak_bytes[rank], run.predicted_bytes[rank]},
                  faults);
}

void compare_repeated(const Trajectory& first, const Trajectory& second, Faults& faults) {
  if (first.losses != second.losses) faults.push_back("losses of a second run differ in bits");
  if (first.final_parameters != second.final_parameters)
    faults.push_back("parameters of a second run differ in bits");
}

}  // namespace

const Trajectory& Trials::truth(const Case& one) {
  const parity::Experiment alone = one_rank(one);
  std::pair problem(problem_of(one), alone.layout.layer_dtypes);
  if (problem != problem_) {
    truth_ = parity::train(alone);
    problem_ = std::move(problem);
  }
  return truth_;
}

std::vector<std::string> Trials::run(const Case& one, const TrialOptions& options) {
  if (const Status legal = check(one); !legal)
    return {legal.error().message + "; " + legal.error().hint};
  Faults faults;
  try {
    const parity::Experiment experiment = experiment_of(one);
    const Trajectory run = parity::train(experiment);
    compare_all(one, run, truth(one), faults);
    if (options.repeats) compare_repeated(run, parity::train(experiment), faults);
  } catch (const std::exception& error) {
    faults.push_back(fmt::format("ends with: {}", error.what()));
  }
  return faults;
}

std::vector<std::string> Trials::run_on(comm::Communicator& world, const Case& one) {
  const parity::Experiment experiment = experiment_of(one);
  const Trajectory run = parity::steps_on(world, experiment);
  Faults faults;
  compare_bytes(one, {world.rank(), run.peak_bytes[0], run.predicted_bytes[0]}, faults);
  if (world.rank() != 0) return faults;
  compare("loss", run.losses, truth(one).losses, tolerance_of(one), faults);
  const Trajectory threads = parity::train(experiment);
  if (run.losses != threads.losses || run.grad_norms != threads.grad_norms)
    faults.push_back("ranks as threads give other bits");
  return faults;
}

Case Trials::shrink(Case failing) {
  const TrialOptions options{.repeats = true};
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (const Case& one : plainer(failing)) {
      const Status legal = check(one);
      if (!legal && legal.error().code != ExitCode::kBug) continue;
      if (run(one, options).empty()) continue;
      failing = one;
      smaller = true;
      break;
    }
  }
  return failing;
}

}  // namespace ptrain::random
