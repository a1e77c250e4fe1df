#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/program/keep.h"
#include "engine/layers/layer.h"

namespace ptrain::test {

using program::Keep;
enum class WeightTime { kAtOnce, kAfterAllInputs };

// A whole model of engine layers with its parameters and gradients, run by hand, without programs.
// Layers read parameters in the architecture's compute dtype, as they are when a call begins.
// Gradients begin as NaN, so that one that is added to before it is written shows.
class LayerModel {
 public:
  // gap: elements left free after every parameter; 0: neighbours touch and are multiplied as one
  // matrix. tensor: the ranks of the tensor axis where the architecture is the part of one of them;
  // step(), loss() and logits() are collective then.
  explicit LayerModel(model::Architecture architecture, std::int64_t gap = 0,
                      comm::Communicator* tensor = nullptr);

  // Forward and backward; gradients are written on the first call and added to afterwards.
  layers::LossSums step(const data::MicroBatch& batch, Keep keep = Keep::kAll,
                        WeightTime time = WeightTime::kAtOnce);
  // Hidden state after every layer but the head.
  std::vector<std::vector<std::byte>> hidden(const data::MicroBatch& batch);
  layers::LossSums loss(const data::MicroBatch& batch);
  std::vector<double> logits(const data::MicroBatch& batch);  // [token, vocabulary]
  // What the routers of a forward give and choose, layer by layer, of this rank's tokens.
  struct Routing {
    std::vector<double> logits;        // [token, expert]
    std::vector<std::int32_t> chosen;  // [token, top_k]
  };
  std::vector<Routing> routing(const data::MicroBatch& batch);
  void restart_gradients();  // the next step writes them again
  void forget_gradients();   // and they are NaN until then

  const model::Architecture& architecture() const { return architecture_; }
  std::size_t num_parameters() const { return parameters_.size(); }
  const Tensor& parameter(std::size_t index) const { return parameters_[index]; }
  const Tensor& gradient(std::size_t index) const { return gradients_[index]; }
  Arena& arena() { return *arena_; }

 private:
  struct Kept {
    std::vector<Buffer> buffers;
    std::vector<Tensor> tensors;
  };
  Kept stash_of(const model::LayerSpec& spec, std::int64_t num_tokens, Keep keep);
  static Tensor kept_as(const model::LayerSpec& spec, const std::string& name, const Kept& kept);
  void fill_rest(const model::LayerSpec& spec, std::int64_t num_tokens, Kept& kept);
  Tensor room(std::int64_t rows, std::int64_t cols, std::vector<Buffer>& buffers) {
    return room(rows, cols, architecture_.dtype, buffers);
  }
  Tensor room(std::int64_t rows, std::int64_t cols, DType dtype, std::vector<Buffer>& buffers);
  void publish_parameters();
  std::vector<Tensor> views(const model::LayerSpec& spec) const;
  std::vector<layers::GradientTarget> targets(const model::LayerSpec& spec);
  std::vector<Kept> forward(const data::MicroBatch& batch, Keep keep, const Tensor& hidden);
  // Makes the exchanges of a call, which must be those that core/model declares.
  void run(layers::Task task, const model::LayerSpec& spec, model::Call call);

  model::Architecture architecture_;
  comm::Communicator* tensor_;
  std::vector<std::unique_ptr<layers::Layer>> layers_;
  std::unique_ptr<Arena> arena_ = std::make_unique<Arena>();
  std::vector<Buffer> storage_;
  std::vector<Tensor> parameters_, gradients_;
  std::vector<Tensor> computed_;  // parameters in the compute dtype: themselves where it is theirs
  std::vector<bool> written_;
};

}  // namespace ptrain::test
