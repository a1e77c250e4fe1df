#include "engine/train/parity.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <utility>
#include <vector>

#include "core/model/slice.h"
#include "core/parity/record.h"
#include "core/program/segments.h"
#include "engine/base/device.h"
#include "engine/base/engine_error.h"
#include "engine/train/attempt.h"

namespace ptrain::train {
namespace {

using parity::Sketch;
using parity::Stage;
using program::Action;
using program::Kind;

// Element 0 of `tensor` is element `first` of the tensor that it is a piece of.
Sketch sketch_of(const Tensor& tensor, std::int64_t first = 0) {
  device::synchronize();
  Sketch sketch;
  dispatch(tensor.dtype, [&](auto zero) {
    for (std::int64_t row = 0; row < tensor.rows; ++row) {
      const auto* values = tensor.as<decltype(zero)>() + row * tensor.stride;
      for (std::int64_t col = 0; col < tensor.cols; ++col)
        sketch.add(first + row * tensor.cols + col, static_cast<double>(values[col]));
    }
  });
  return sketch;
}

// Of each value times its weight; both [1, n] and of one dtype.
Sketch sketch_of_products(const Tensor& values, const Tensor& weights, std::int64_t first) {
  device::synchronize();
  Sketch sketch;
  dispatch(values.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t i = 0; i < values.cols; ++i)
      sketch.add(first + i,
                 static_cast<double>(values.as<T>()[i]) * static_cast<double>(weights.as<T>()[i]));
  });
  return sketch;
}

Sketch sketch_of(const std::vector<std::int32_t>& values) {
  Sketch sketch;
  for (std::size_t i = 0; i < values.size(); ++i)
    sketch.add(static_cast<std::int64_t>(i), values[i]);
  return sketch;
}

Sketch sketch_of(double value) {
  Sketch sketch;
  sketch.add(0, value);
  return sketch;
}

// What one rank sees of a step.
class Recorder {
 public:
  explicit Recorder(Attempt& attempt)
      : attempt_(attempt),
        shape_(*attempt.shape),
        place_(mesh::coordinates_of(shape_.layout(), attempt.input.world.rank())) {
    const auto& parameters = shape_.whole().parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i)
      backwards_[parameters[i].name] = static_cast<int>(parameters.size() - 1 - i);
  }

  // Ranks of a pipeline, of the tensor axis, and those that share rows have the same.
  void rows(const data::StepRows& rows) {
    if (place_.pp > 0 || place_.cp > 0 || place_.tp > 0) return;
    for (std::size_t i = 0; i < rows.micro_batches.size(); ++i) {
      const data::MicroBatch& batch = rows.micro_batches[i];
      const int part = part_of(static_cast<int>(i));
      put({Stage::kRows, 0, part}, "tokens", sketch_of(batch.tokens));
      put({Stage::kRows, 1, part}, "targets", sketch_of(batch.targets));
      put({Stage::kRows, 2, part}, "positions", sketch_of(batch.positions));
    }
  }

  // What this rank's shards have: kInitial, kGradient or kUpdated. Gradients stay where they are
  // until the next step, so those that made an update can still be read behind it.
  void parameters(Stage stage) {
    const auto& held = shape_.architecture().parameters;
    for (auto& group : shape_.executor().groups())
      for (const auto& run : group.runs()) {
        const auto& parameter = held[static_cast<std::size_t>(run.parameter)];
        if (!parameter.counts) continue;
        parity::Recorded& recorded =
            records_[{stage, backwards_.at(parameter.name), replica_of(group)}];
        recorded.name = parameter.name;
        for (const auto& piece : model::runs_of_whole(parameter, run.begin, run.end))
          add_piece(stage, group, run, piece, recorded);
      }
  }

  void observe(const Action& action, bool begins) {
    if (begins) {
      if (action.kind == Kind::kGradNorm) parameters(Stage::kGradient);
      return;
    }
    attempt_.input.control.set_step(++num_actions_);  // progress, for who watches for hangs
    if (!program::ends_call(action, shape_.architecture())) return;
    if (action.kind == Kind::kForward) forward(action);
    const bool goes_back = action.kind == Kind::kBackward || action.kind == Kind::kBackwardInput;
    if (goes_back) backward(action);
  }

  void step(const execute::StepResult& result) {
    if (attempt_.input.world.rank() != 0) return;
    put({Stage::kStep, 0, 0}, "targets", sketch_of(static_cast<double>(result.num_targets)));
    put({Stage::kStep, 1, 0}, "mean loss", sketch_of(result.loss));
    put({Stage::kStep, 2, 0}, "gradient norm", sketch_of(result.grad_norm));
    put({Stage::kStep, 3, 0}, "scale of gradients", sketch_of(result.scale));
  }

  void write() const {
    const std::string path =
        attempt_.directory.parity(attempt_.input.request.attempt, attempt_.input.world.rank());
    std::ofstream file(path);
    file << parity::to_text(records_) << '\n';
    if (!file.flush())
      throw EngineError(ExitCode::kEnvironment, "cannot write " + path,
                        "its folder must be writable, and its disk have room");
  }

 private:
  static void add_piece(Stage stage, state::GroupBuffer& group, const mesh::ShardRun& run,
                        const model::WholeRun& piece, parity::Recorded& recorded) {
    const auto part = [&](const Tensor& whole) {
      return whole.columns(piece.place, piece.end - piece.begin);
    };
    const Tensor master = part(group.master(run));
    if (stage == Stage::kInitial) return recorded.sketch.add(sketch_of(master, piece.begin));
    const Tensor gradient = part(group.gradient(run));
    recorded.sketch.add(sketch_of(stage == Stage::kGradient ? gradient : master, piece.begin));
    recorded.weighed.add(sketch_of_products(master, gradient, piece.begin));
  }

  // Pieces of one tensor add up.
  void put(const parity::Key& key, std::string name, const Sketch& sketch) {
    parity::Recorded& recorded = records_[key];
    recorded.name = std::move(name);
    recorded.sketch.add(sketch);
  }

  // Micro-batches count over all ranks, as the rows in the stream do.
  int part_of(int micro_batch) const {
    return micro_batch * shape_.layout().num_data_ranks() + shape_.data_rank();
  }

  // Which of the copies of a group's shards this rank has.
  int replica_of(const state::GroupBuffer& group) const {
    const auto& spec = shape_.architecture().groups[static_cast<std::size_t>(group.plan().group)];
    if (!spec.experts) return place_.dp;
    return mesh::expert_coordinates_of(shape_.layout(), attempt_.input.world.rank()).edp;
  }

  // f(rows, token of the first): of a tensor with the rows of the stream. Of the tokens that this
  // rank and those of its tensor axis hold, each of these has equal parts.
  template <class F>
  void each_run(const Action& action, const Tensor& stream, const F& f) const {
    const model::Architecture& part = shape_.architecture();
    const std::int64_t begin = place_.tp * stream.rows, end = begin + stream.rows;
    std::int64_t place = 0;
    for (const data::DocumentSpan& span :
         data::tokens_of_part(shape_.executor().batch_of(action), {part.ring, part.ulysses})) {
      const std::int64_t first = std::max(begin, place);
      const std::int64_t last = std::min(end, place + span.end - span.begin);
      if (first < last)
        f(stream.row_range(first - begin, last - first), span.begin + first - place);
      place += span.end - span.begin;
    }
  }

  Sketch sketch_of_stream(const Action& action, const Tensor& stream) const {
    Sketch sketch;
    each_run(action, stream, [&](const Tensor& rows, std::int64_t token) {
      sketch.add(sketch_of(rows, token * stream.cols));
    });
    return sketch;
  }

  parity::Choices choices_of(const Action& action, const Tensor& chosen) const {
    parity::Choices choices;
    each_run(action, chosen, [&](const Tensor& rows, std::int64_t token) {
      for (std::int64_t row = 0; row < rows.rows; ++row) {
        const auto* experts = rows.as<std::int32_t>() + row * rows.stride;
        auto& sorted = choices[token + row];
        sorted.assign(experts, experts + rows.cols);
        std::ranges::sort(sorted);
      }
    });
    return choices;
  }

  void router(const Action& action) {
    const auto& stash =
        shape_.architecture().layers[static_cast<std::size_t>(action.layer_last)].stash;
    const auto chosen = std::ranges::find(stash, "chosen", &model::StashTensor::name);
    if (chosen == stash.end()) return;
    device::synchronize();
    const auto place = static_cast<std::size_t>(chosen - stash.begin());
    parity::Recorded& recorded =
        records_[{Stage::kRouting, action.layer_last, part_of(action.micro_batch)}];
    recorded.name = "router of " + name_of(action.layer_last);
    recorded.choices.merge(choices_of(action, shape_.executor().stash(action)[place]));
  }

  std::string name_of(int layer) const {
    switch (shape_.architecture().layers[static_cast<std::size_t>(layer)].kind) {
      case model::LayerKind::kEmbedding:
        return "embedding";
      case model::LayerKind::kHead:
        return "head";
      case model::LayerKind::kBlock:
        break;
    }
    return fmt::format("block {}", layer - 1);
  }

  bool is_head(int layer) const {
    return shape_.architecture().layers[static_cast<std::size_t>(layer)].kind ==
           model::LayerKind::kHead;
  }

  bool has_stream(int layer) const {
    const model::Architecture& part = shape_.architecture();
    return part.has_stream(part.layers[static_cast<std::size_t>(layer)]);
  }

  void forward(const Action& action) {
    if (is_head(action.layer_last)) return;  // it makes the loss, with its backward
    if (!has_stream(action.layer_last)) return;
    router(action);
    put({Stage::kForward, action.layer_last, part_of(action.micro_batch)},
        name_of(action.layer_last), sketch_of_stream(action, shape_.executor().stream(action)));
  }

  void backward(const Action& action) {
    const int part = part_of(action.micro_batch);
    if (is_head(action.layer_last)) {
      const layers::LossSums sums = shape_.executor().sums();
      put({Stage::kLoss, 0, part}, "sum over targets", sketch_of(sums.loss - before_.loss));
      put({Stage::kLoss, 1, part}, "number of targets",
          sketch_of(static_cast<double>(sums.num_targets - before_.num_targets)));
      before_ = sums;
    }
    if (action.layer_first == 0) return;  // nothing lies before the embedding
    if (!has_stream(action.layer_last)) return;
    const int last = static_cast<int>(shape_.architecture().layers.size()) - 1;
    put({Stage::kBackward, last - action.layer_first, part}, name_of(action.layer_first),
        sketch_of_stream(action, shape_.executor().stream_gradient(action)));
  }

  Attempt& attempt_;
  ShapeRun& shape_;
  mesh::Coordinates place_;
  std::map<std::string, int> backwards_;  // by name: place from the last parameter of the model on
  parity::Records records_;
  layers::LossSums before_;  // of the micro-batches before
  std::int64_t num_actions_ = 0;
};

}  // namespace

Outcome record_parity(const TrainInput& input) {
  input.control.set_phase("starting");
  Attempt attempt(input);
  attempt.span = recipe::shape_after(attempt.recipe, 0);
  begin(attempt, Start{});
  ShapeRun& shape = *attempt.shape;
  const auto& layout = shape.layout();
  Recorder recorder(attempt);
  const auto rows = attempt.loader->next(shape.data_rank(), layout.num_data_ranks(),
                                         layout.num_micro_batches, layout.micro_batch);
  recorder.rows(rows);
  recorder.parameters(Stage::kInitial);
  shape.executor().observe(
      [&](const Action& action, bool begins) { recorder.observe(action, begins); });
  recorder.step(
      shape.executor().train(shape.train_program(), rows.micro_batches, attempt.settings_of(1)));
  shape.executor().observe(nullptr);
  recorder.parameters(Stage::kUpdated);
  recorder.write();
  shape.close();
  return {ExitCode::kDone, "recorded", ""};
}

}  // namespace ptrain::train
