#include "tests/parity/trajectory.h"

#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <mutex>
#include <random>
#include <thread>

#include "core/mesh/part.h"
#include "core/model/optimizer.h"
#include "core/model/slice.h"
#include "core/program/compile.h"
#include "core/program/temporary.h"
#include "engine/base/engine_error.h"
#include "engine/execute/executor.h"
#include "engine/execute/groups.h"
#include "engine/state/init.h"
#include "tests/support/ranks.h"

namespace ptrain::parity {
namespace {

using Values = std::map<std::string, std::vector<double>>;

model::Architecture architecture_of(const Experiment& experiment) {
  auto architecture = value_or_throw(model::make_architecture(experiment.model, experiment.dtype));
  model::use_optimizer(architecture, experiment.optimizer);
  if (experiment.block != model::BlockKind::kElement)
    for (auto& parameter : architecture.parameters) parameter.block = experiment.block;
  return architecture;
}

// In a folder of its own, which is needed only until the file is open.
std::unique_ptr<state::OffloadStore> file_store(int rank, std::int64_t bytes) {
  std::string folder = "/tmp/ptrain-offload-XXXXXX";
  PT_CHECK(::mkdtemp(folder.data()) != nullptr);
  auto store = state::make_file_store(folder, rank, bytes);
  std::filesystem::remove(folder);
  return store;
}

// Before one action of eight, for up to a fifth of a millisecond.
execute::ActionObserver sleeper(int rank) {
  return [random = std::mt19937(static_cast<unsigned>(rank))](const program::Action&,
                                                              bool begins) mutable {
    if (begins && random() % 8 == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
  };
}

// One rank's part of an experiment.
class RankRun {
 public:
  RankRun(const Experiment& experiment, comm::Communicator& world)
      : experiment_(experiment),
        world_(world),
        architecture_(value_or_throw(
            mesh::part_of(architecture_of(experiment), experiment.layout, world.rank()))),
        groups_(world, experiment.layout, architecture_) {
    program_ = value_or_throw(program::compile(
        {architecture_, experiment.layout, "toy", program::Purpose::kTrain}, world.rank()));
    executor_ = std::make_unique<execute::Executor>(
        architecture_, experiment.layout, groups_.communicators(), arena_,
        [&](std::int64_t bytes) { return file_store(world.rank(), bytes); });
    for (auto& group : executor_->groups())
      for (const auto& run : group.runs())
        state::initial_values(parameter_of(run), architecture_, experiment.seed, run.begin, run.end,
                              group.master(run));
    state::publish_masters(executor_->groups());
    if (experiment.sleeps) executor_->observe(sleeper(world.rank()));
  }

  execute::StepResult step(int index) {
    const auto& layout = experiment_.layout;
    const std::int64_t rows_a_step =
        layout.micro_batch * layout.num_micro_batches * layout.num_data_ranks();
    const auto rows = toy_rows(
        rows_a_step, experiment_.sequence, static_cast<std::int32_t>(experiment_.model.vocab_size),
        experiment_.seed + static_cast<std::uint64_t>(experiment_.repeats ? 0 : index),
        experiment_.rows);
    const int data_rank = mesh::coordinates_of(layout, world_.rank()).data_rank(layout);
    std::vector<data::MicroBatch> batches;
    for (std::int64_t i = 0; i < layout.num_micro_batches; ++i)
      batches.push_back(join_rows(rows,
                                  (i * layout.num_data_ranks() + data_rank) * layout.micro_batch,
                                  layout.micro_batch));
    execute::StepSettings settings;
    settings.learning_rate = experiment_.learning_rate;
    settings.step = index + 1;
    settings.clip_norm = experiment_.clip_norm;
    settings.optimizer = optim::options_of(experiment_.optimizer, experiment_.model);
    return executor_->train(program_, batches, settings);
  }

  // Writes the runs of this rank's shards into whole tensors; `view` picks the tensor of a run.
  template <class View>
  void collect(Values& values, View view) {
    for (auto& group : executor_->groups()) {
      const auto& spec = architecture_.groups[static_cast<std::size_t>(group.plan().group)];
      if (!mesh::is_first_replica(spec, experiment_.layout, world_.rank())) continue;
      for (const auto& run : group.runs())
        if (parameter_of(run).counts) place(view(group, run), run, values);
    }
  }

  program::BytesByClass measured() const {
    program::BytesByClass bytes{};
    for (int i = 0; i < program::kNumMemoryClasses; ++i)
      bytes[static_cast<std::size_t>(i)] = arena_.peak(static_cast<program::MemoryClass>(i));
    return bytes;
  }

  program::BytesByClass predicted() const {
    const auto buffers = mesh::plan_buffers(architecture_, experiment_.layout);
    const program::MemoryContext context{architecture_, experiment_.layout, buffers,
                                         experiment_.sequence,
                                         mesh::shard_ranks_of(experiment_.layout, world_.rank())};
    program::BytesByClass bytes = program::peak_bytes(program_, context);
    bytes[static_cast<std::size_t>(program::MemoryClass::kTemporary)] =
        program::temporary_bytes(context);
    return bytes;
  }

  void close() {
    executor_->close();
    groups_.close();
  }

 private:
  // Where the run belongs in the whole parameter.
  void place(const Tensor& piece, const mesh::ShardRun& run, Values& values) const {
    const model::ParameterSpec& parameter = parameter_of(run);
    auto& whole = values[parameter.name];
    std::int64_t elements = 1;
    for (const std::int64_t size : model::whole_shape_of(parameter)) elements *= size;
    whole.resize(static_cast<std::size_t>(elements));
    dispatch(piece.dtype, [&](auto zero) {
      const auto* data = piece.as<decltype(zero)>();
      for (const auto& part : model::runs_of_whole(parameter, run.begin, run.end))
        std::copy_n(data + part.place, part.end - part.begin, whole.begin() + part.begin);
    });
  }

  const model::ParameterSpec& parameter_of(const mesh::ShardRun& run) const {
    return architecture_.parameters[static_cast<std::size_t>(run.parameter)];
  }

  const Experiment& experiment_;
  comm::Communicator& world_;
  model::Architecture architecture_;
  Arena arena_;
  execute::Groups groups_;
  program::Program program_;
  std::unique_ptr<execute::Executor> executor_;
};

}  // namespace

Trajectory train(const Experiment& experiment) {
  Trajectory result;
  const int num_ranks = experiment.layout.num_ranks();
  result.peak_bytes.resize(static_cast<std::size_t>(num_ranks));
  result.predicted_bytes.resize(static_cast<std::size_t>(num_ranks));
  std::mutex mutex;
  tests::run_ranks(num_ranks, [&](comm::Communicator& world) {
    RankRun rank(experiment, world);
    auto collect = [&](Values& values, auto view) {
      const std::lock_guard lock(mutex);
      rank.collect(values, view);
    };
    auto master = [](auto& group, const auto& run) { return group.master(run); };
    collect(result.initial_parameters, master);
    for (int index = 0; index < experiment.num_steps; ++index) {
      const auto step = rank.step(index);
      if (world.rank() == 0) {
        result.losses.push_back(step.loss);
        result.grad_norms.push_back(step.grad_norm);
        if (step.routers) result.routers.push_back(*step.routers);
      }
      if (index == 0)
        collect(result.first_gradients,
                [](auto& group, const auto& run) { return group.gradient(run); });
    }
    collect(result.final_parameters, master);
    result.peak_bytes[static_cast<std::size_t>(world.rank())] = rank.measured();
    result.predicted_bytes[static_cast<std::size_t>(world.rank())] = rank.predicted();
    rank.close();
  });
  return result;
}

Trajectory steps_on(comm::Communicator& world, const Experiment& experiment) {
  RankRun rank(experiment, world);
  Trajectory steps;
  for (int index = 0; index < experiment.num_steps; ++index) {
    const auto step = rank.step(index);
    steps.losses.push_back(step.loss);
    steps.grad_norms.push_back(step.grad_norm);
  }
  steps.peak_bytes = {rank.measured()};
  steps.predicted_bytes = {rank.predicted()};
  rank.close();
  return steps;
}

double relative_distance(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
}

}  // namespace ptrain::parity
