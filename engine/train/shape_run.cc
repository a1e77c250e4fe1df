#include "engine/train/shape_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/mesh/part.h"
#include "core/model/optimizer.h"
#include "core/program/compile.h"
#include "engine/base/device.h"
#include "engine/base/engine_error.h"
#include "engine/base/fault.h"
#include "engine/base/planted.h"
#include "engine/state/init.h"

namespace ptrain::train {

ShapeRun::ShapeRun(const run::Plan& plan, std::size_t shape, comm::Communicator& world,
                   const std::string& offload_folder)
    : plan_(plan),
      shape_(shape),
      world_(world),
      whole_(value_or_throw(model::make_architecture(plan.recipe))),
      architecture_(value_or_throw(mesh::part_of(whole_, layout(), world.rank()))) {
  fault::point("start.shape.compile");
  program::CompileInput input{architecture_, layout(), this->shape().name,
                              program::Purpose::kTrain};
  train_program_ = value_or_throw(program::compile(input, world.rank()));
  fault::point("start.shape.check");
  check_plan();
  fault::point("start.shape.compile_evaluation");
  mesh::Layout evaluation = layout();
  evaluation.num_micro_batches = 1;
  evaluate_program_ = value_or_throw(program::compile(
      {architecture_, evaluation, input.shape, program::Purpose::kEvaluate}, world.rank()));

  fault::point("start.shape.groups");
  groups_.emplace(world, layout(), architecture_);
  fault::point("start.shape.executor");
  executor_ = std::make_unique<execute::Executor>(
      architecture_, layout(), groups_->communicators(), arena_, [&](std::int64_t bytes) {
        return device::is_gpu() ? state::make_host_store(bytes)
                                : state::make_file_store(offload_folder, world.rank(), bytes);
      });
}

ShapeRun::~ShapeRun() = default;

// A rank whose program differs from the planned one must not start: its peers would wait for ever.
void ShapeRun::check_plan() const {
  const auto& planned = plan_.shapes[shape_];
  if (planned.layout.num_ranks() != world_.size())
    throw EngineError(ExitCode::kEnvironment,
                      fmt::format("the plan of shape '{}' is for {} ranks, but {} were started",
                                  planned.name, planned.layout.num_ranks(), world_.size()),
                      "plan again for this number of ranks");
  if (device::is_gpu() && planned.layout.shared_window)
    throw EngineError(ExitCode::kEnvironment,
                      fmt::format("the plan of shape '{}' shares memory between ranks, which ranks "
                                  "on GPUs cannot",
                                  planned.name),
                      "plan again for a cluster with GPUs");
  const auto& classes = planned.predicted.classes;
  const std::string hash = program::class_hash(train_program_);
  const bool known =
      std::any_of(classes.begin(), classes.end(),
                  [&](const run::ClassPrediction& entry) { return entry.program_hash == hash; });
  if (!classes.empty() && !known)
    throw EngineError(ExitCode::kEnvironment,
                      fmt::format("rank {} compiles another program than the plan's (hash {})",
                                  world_.rank(), hash),
                      "plan.json was changed, or another build of ptrain made it: plan again");
}

int ShapeRun::data_rank() const {
  return mesh::coordinates_of(layout(), world_.rank()).data_rank(layout());
}

void ShapeRun::initialise(std::uint64_t seed) {
  fault::point("start.initialise");
  device::synchronize();
  if (planted(Bug::kInitByRank)) seed += static_cast<std::uint64_t>(world_.rank());
  for (auto& group : executor_->groups())
    for (const auto& run : group.runs())
      state::initial_values(architecture_.parameters[static_cast<std::size_t>(run.parameter)],
                            architecture_, seed, run.begin, run.end, group.master(run));
  state::publish_masters(executor_->groups());
}

void ShapeRun::close() {
  fault::point("next.close");
  executor_->close();
  groups_->close();
}

}  // namespace ptrain::train
