#include "tests/parity/trajectory.h"

#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <mutex>

#include "core/model/optimizer.h"
#include "core/program/compile.h"
#include "core/program/temporary.h"
#include "engine/base/engine_error.h"
#include "engine/execute/executor.h"
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

// One rank's part of an experiment.
class RankRun {
 public:
  RankRun(const Experiment& experiment, comm::Communicator& world)
      : experiment_(experiment), world_(world), architecture_(architecture_of(experiment)) {
    const auto place = mesh::coordinates_of(experiment.layout, world.rank());
    const bool messages = !experiment.layout.shared_window;
    if (experiment.layout.shard > 1) reduce_ = world.split(place.dp, place.shard, "reduce");
    if (experiment.layout.shard > 1 && messages)
      gather_ = world.split(place.dp, place.shard, "gather");
    if (experiment.layout.dp > 1 && messages) dp_ = world.split(place.shard, place.dp, "dp");
    program_ = value_or_throw(program::compile(
        {architecture_, experiment.layout, "toy", program::Purpose::kTrain}, world.rank()));
    executor_ = std::make_unique<execute::Executor>(
        architecture_, experiment.layout,
        execute::Communicators{world, gather_.get(), reduce_.get(), dp_.get()}, arena_,
        [&](std::int64_t bytes) { return file_store(world.rank(), bytes); });
    for (auto& group : executor_->groups())
      for (const auto& run : group.runs())
        state::initial_values(parameter_of(run), architecture_, experiment.seed, run.begin, run.end,
                              group.master(run));
    state::publish_masters(executor_->groups());
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
    if (mesh::coordinates_of(experiment_.layout, world_.rank()).dp != 0) return;
    for (auto& group : executor_->groups())
      for (const auto& run : group.runs()) {
        auto& whole = values[parameter_of(run).name];
        whole.resize(static_cast<std::size_t>(parameter_of(run).num_elements()));
        const Tensor piece = view(group, run);
        dispatch(piece.dtype, [&](auto zero) {
          const auto* data = piece.as<decltype(zero)>();
          for (std::int64_t i = 0; i < piece.cols; ++i)
            whole[static_cast<std::size_t>(run.begin + i)] = static_cast<double>(data[i]);
        });
      }
  }

  program::BytesByClass measured() const {
    program::BytesByClass bytes{};
    for (int i = 0; i < program::kNumMemoryClasses; ++i)
      bytes[static_cast<std::size_t>(i)] = arena_.peak(static_cast<program::MemoryClass>(i));
    return bytes;
  }

  program::BytesByClass predicted() const {
    const auto buffers = mesh::plan_buffers(architecture_, experiment_.layout.shard);
    const int shard_rank = mesh::coordinates_of(experiment_.layout, world_.rank()).shard;
    const program::MemoryContext context{architecture_, experiment_.layout, buffers,
                                         experiment_.sequence, shard_rank};
    program::BytesByClass bytes = program::peak_bytes(program_, context);
    bytes[static_cast<std::size_t>(program::MemoryClass::kTemporary)] =
        program::temporary_bytes(context);
    return bytes;
  }

  void close() {
    executor_->close();
    for (auto* group : {dp_.get(), reduce_.get(), gather_.get()})
      if (group != nullptr) group->close();
  }

 private:
  const model::ParameterSpec& parameter_of(const mesh::ShardRun& run) const {
    return architecture_.parameters[static_cast<std::size_t>(run.parameter)];
  }

  const Experiment& experiment_;
  comm::Communicator& world_;
  model::Architecture architecture_;
  Arena arena_;
  std::unique_ptr<comm::Communicator> gather_, reduce_, dp_;
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

std::vector<double> losses_on(comm::Communicator& world, const Experiment& experiment) {
  RankRun rank(experiment, world);
  std::vector<double> losses;
  for (int index = 0; index < experiment.num_steps; ++index)
    losses.push_back(rank.step(index).loss);
  rank.close();
  return losses;
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
