#include "tests/support/layer_model.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "engine/base/engine_error.h"
#include "engine/kernels/convert.h"

namespace ptrain::test {
namespace {

constexpr auto kKind = program::MemoryClass::kStash;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

Tensor view_of(const model::ParameterSpec& spec, DType dtype, Tensor& next, std::int64_t gap) {
  const std::int64_t cols = spec.shape.back();
  const Tensor view = contiguous(next.data, dtype, spec.num_elements() / cols, cols);
  next = next.columns(spec.num_elements() + gap, 0);
  return view;
}

}  // namespace

LayerModel::LayerModel(model::Architecture architecture, std::int64_t gap,
                       comm::Communicator* tensor)
    : architecture_(std::move(architecture)),
      tensor_(tensor),
      layers_(layers::make_layers(architecture_)) {
  std::int64_t total = 0;
  for (const auto& spec : architecture_.parameters) total += spec.num_elements() + gap;
  Tensor next = room(1, total, storage_), next_gradient = room(1, total, storage_);
  std::memset(next.data, 0, at(total * size_of(architecture_.dtype)));
  for (const auto& spec : architecture_.parameters) {
    parameters_.push_back(view_of(spec, architecture_.dtype, next, gap));
    gradients_.push_back(view_of(spec, architecture_.dtype, next_gradient, gap));
  }
  computed_ = parameters_;
  if (architecture_.compute_dtype != architecture_.dtype) {
    Tensor next_computed = room(1, total, architecture_.compute_dtype, storage_);
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      computed_[i] =
          view_of(architecture_.parameters[i], architecture_.compute_dtype, next_computed, gap);
  }
  forget_gradients();
}

void LayerModel::restart_gradients() { written_.assign(parameters_.size(), false); }

void LayerModel::forget_gradients() {
  restart_gradients();
  for (const Tensor& gradient : gradients_)
    dispatch(gradient.dtype, [&]<class T>(T) {
      std::fill_n(gradient.as<T>(), gradient.num_elements(), std::numeric_limits<T>::quiet_NaN());
    });
}

Tensor LayerModel::room(std::int64_t rows, std::int64_t cols, DType dtype,
                        std::vector<Buffer>& buffers) {
  buffers.emplace_back(*arena_, kKind, rows * cols * size_of(dtype));
  return contiguous(buffers.back().data(), dtype, rows, cols);
}

void LayerModel::publish_parameters() {
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (computed_[i].data != parameters_[i].data) kernels::convert(parameters_[i], computed_[i]);
}

LayerModel::Kept LayerModel::stash_of(const model::LayerSpec& spec, std::int64_t num_tokens,
                                      Keep keep) {
  Kept kept;
  kept.tensors.resize(spec.stash.size());
  for (std::size_t i = 0; i < spec.stash.size(); ++i)
    if (program::keeps(keep, spec.stash[i]))
      kept.tensors[i] = room(architecture_.rows_of(spec.stash[i], num_tokens),
                             spec.stash[i].elements_per_token, spec.stash[i].dtype, kept.buffers);
  return kept;
}

void LayerModel::fill_rest(const model::LayerSpec& spec, std::int64_t num_tokens, Kept& kept) {
  for (std::size_t i = 0; i < spec.stash.size(); ++i) {
    Tensor& tensor = kept.tensors[i];
    if (!tensor.empty()) continue;
    tensor = room(architecture_.rows_of(spec.stash[i], num_tokens),
                  spec.stash[i].elements_per_token, spec.stash[i].dtype, kept.buffers);
    // NaN, in place of what a forward may have left in this memory.
    std::memset(tensor.data, 0xff, at(tensor.num_elements() * size_of(tensor.dtype)));
  }
}

std::vector<Tensor> LayerModel::views(const model::LayerSpec& spec) const {
  std::vector<Tensor> result;
  for (const int index : spec.parameters) result.push_back(computed_[at(index)]);
  return result;
}

std::vector<layers::GradientTarget> LayerModel::targets(const model::LayerSpec& spec) {
  std::vector<layers::GradientTarget> result;
  for (const int index : spec.parameters) {
    result.push_back({gradients_[at(index)], written_[at(index)]});
    written_[at(index)] = true;
  }
  return result;
}

void LayerModel::run(layers::Task task, const model::LayerSpec& spec, model::Call call) {
  for (const auto& expected : model::exchanges_of(architecture_, spec, call)) {
    const layers::Exchange* needed = task.resume();
    PT_CHECK(needed != nullptr && needed->kind == expected.kind && needed->axis == expected.axis);
    needed->start(*tensor_)->wait();
  }
  PT_CHECK(task.resume() == nullptr);
}

std::vector<LayerModel::Kept> LayerModel::forward(const data::MicroBatch& batch, Keep keep,
                                                  const Tensor& hidden) {
  publish_parameters();
  std::vector<Kept> stashes;
  std::vector<Buffer> buffers;
  const Tensor next = room(hidden.rows, hidden.cols, buffers);
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const auto& spec = architecture_.layers[l];
    stashes.push_back(stash_of(spec, batch.num_tokens(), keep));
    const auto parameters = views(spec);
    const layers::Context context{batch, *arena_, parameters, stashes.back().tensors, tensor_};
    run(layers_[l]->forward(context, hidden, next), spec, model::Call::kForward);
    if (l + 1 < layers_.size())
      std::memcpy(hidden.data, next.data, at(hidden.num_elements() * size_of(hidden.dtype)));
  }
  return stashes;
}

layers::LossSums LayerModel::step(const data::MicroBatch& batch, Keep keep, WeightTime time) {
  std::vector<Buffer> scratch;
  const Tensor dy = room(architecture_.stream_rows(batch.num_tokens()),
                         architecture_.config.hidden_size, scratch);
  std::vector<Kept> stashes = forward(batch, keep, dy);
  std::vector<layers::WeightProduct> products;
  layers::LossSums sums;
  for (std::size_t l = layers_.size(); l-- > 0;) {
    const auto& spec = architecture_.layers[l];
    const auto parameters = views(spec);
    fill_rest(spec, batch.num_tokens(), stashes[l]);
    const layers::Context context{batch, *arena_, parameters, stashes[l].tensors, tensor_};
    if (keep == Keep::kInput) run(layers_[l]->recompute(context), spec, model::Call::kRecompute);
    if (keep == Keep::kSelected) run(layers_[l]->remake(context), spec, model::Call::kRemake);
    const auto gradients = targets(spec);
    run(layers_[l]->backward_input(context, gradients, dy, products, scratch, sums), spec,
        model::Call::kBackward);
    if (time == WeightTime::kAtOnce) {
      layers::backward_weight(products);
      products.clear();
      stashes[l] = {};
    }
  }
  layers::backward_weight(products);
  return sums;
}

std::vector<std::vector<std::byte>> LayerModel::hidden(const data::MicroBatch& batch) {
  publish_parameters();
  std::vector<Buffer> buffers;
  const std::int64_t size = architecture_.config.hidden_size;
  const std::int64_t rows = architecture_.stream_rows(batch.num_tokens());
  Tensor x = room(rows, size, buffers), y = room(rows, size, buffers);
  std::vector<std::vector<std::byte>> result;
  for (std::size_t l = 0; l + 1 < layers_.size(); ++l) {
    const auto parameters = views(architecture_.layers[l]);
    const layers::Context context{batch, *arena_, parameters, {}, tensor_};
    run(layers_[l]->forward(context, x, y), architecture_.layers[l], model::Call::kForward);
    std::swap(x, y);
    result.emplace_back(x.as<std::byte>(), x.as<std::byte>() + x.num_elements() * size_of(x.dtype));
  }
  return result;
}

Tensor LayerModel::kept_as(const model::LayerSpec& spec, const std::string& name,
                           const Kept& kept) {
  for (std::size_t i = 0; i < spec.stash.size(); ++i)
    if (spec.stash[i].name == name) return kept.tensors[i];
  return {};
}

std::vector<LayerModel::Routing> LayerModel::routing(const data::MicroBatch& batch) {
  std::vector<Buffer> buffers;
  const std::int64_t rows = architecture_.stream_rows(batch.num_tokens());
  const auto stashes =
      forward(batch, Keep::kAll, room(rows, architecture_.config.hidden_size, buffers));
  std::vector<Routing> result;
  for (std::size_t l = 0; l < stashes.size(); ++l) {
    const Tensor logits = kept_as(architecture_.layers[l], "router", stashes[l]);
    if (logits.empty()) continue;
    const Tensor chosen = kept_as(architecture_.layers[l], "chosen", stashes[l]);
    Routing& routing = result.emplace_back();
    const auto* choices = chosen.as<std::int32_t>();
    routing.chosen.assign(choices, choices + chosen.num_elements());
    dispatch(logits.dtype, [&]<class T>(T) {
      routing.logits.assign(logits.as<T>(), logits.as<T>() + logits.num_elements());
    });
  }
  return result;
}

layers::LossSums LayerModel::loss(const data::MicroBatch& batch) {
  auto last = hidden(batch).back();
  const Tensor x =
      contiguous(last.data(), architecture_.dtype, architecture_.stream_rows(batch.num_tokens()),
                 architecture_.config.hidden_size);
  const auto parameters = views(architecture_.layers.back());
  layers::LossSums sums;
  const layers::Context context{batch, *arena_, parameters, {}, tensor_};
  run(layers_.back()->loss(context, x, sums), architecture_.layers.back(), model::Call::kEvaluate);
  return sums;
}

std::vector<double> LayerModel::logits(const data::MicroBatch& batch) {
  auto last = hidden(batch).back();
  const Tensor x =
      contiguous(last.data(), architecture_.dtype, architecture_.stream_rows(batch.num_tokens()),
                 architecture_.config.hidden_size);
  std::vector<Buffer> buffers;
  const Tensor found = room(batch.num_tokens(), layers::vocabulary_of(architecture_), buffers);
  const auto parameters = views(architecture_.layers.back());
  const layers::Context context{batch, *arena_, parameters, {}, tensor_};
  run(layers_.back()->logits(context, x, 0, found), architecture_.layers.back(),
      model::Call::kEvaluate);
  std::vector<double> result;
  dispatch(found.dtype,
           [&]<class T>(T) { result.assign(found.as<T>(), found.as<T>() + found.num_elements()); });
  return result;
}

}  // namespace ptrain::test
